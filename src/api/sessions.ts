import { type Static, Type } from "@sinclair/typebox";
import { type About, endpointsWith } from "./about.ts";
import * as t from "./answers.ts";

const OpenSession = t.namedAnswer("SignedInSession", {
  id: Type.String(),
  signed_in_at: t.time,
  expires_at: t.time,
  current: t.boolean("the one that asks"),
});
export type OpenSession = Static<typeof OpenSession>;

export const SESSIONS = endpointsWith(
  { who: ["session"] },
  {
    logout: {
      summary: "Signs out: ends the session that sends this",
      act: "sign out",
      answers: { 204: null },
    },
    list: {
      summary: "Lists the account's sessions, newest first",
      details: "Never a secret or a hash. Expired ones are not listed.",
      act: "list sessions",
      answers: { 200: t.listOf(OpenSession) },
    },
    end: {
      summary: "Ends a session of the account",
      details: "From the next request on, on every node.",
      act: "end sessions",
      answers: { 200: t.answerOf({ id: Type.String(), ended: Type.Literal(true) }) },
    },
    endAll: {
      summary: "Ends all sessions of the account, the one that sends this too",
      act: "end sessions",
      answers: { 200: t.answerOf({ ended: t.count }) },
    },
  },
) satisfies Record<string, About>;
