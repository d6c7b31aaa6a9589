import { type Static, Type } from "@sinclair/typebox";
import type { About } from "./about.ts";
import { answerOf, count, listOf, namedAnswer, time } from "./answers.ts";

const OpenSession = namedAnswer("SignedInSession", {
  id: Type.String(),
  signed_in_at: time,
  expires_at: time,
  current: Type.Boolean({ description: "the one that asks" }),
});
export type OpenSession = Static<typeof OpenSession>;

export const SESSIONS = {
  logout: {
    summary: "Signs out: ends the session that sends this",
    who: ["session"],
    act: "sign out",
    answers: { 204: null },
  },
  list: {
    summary: "Lists the account's sessions, newest first",
    details: "Never a secret or a hash. Expired ones are not listed.",
    who: ["session"],
    act: "list sessions",
    answers: { 200: listOf(OpenSession) },
  },
  end: {
    summary: "Ends a session of the account",
    details: "From the next request on, on every node.",
    who: ["session"],
    act: "end sessions",
    answers: { 200: answerOf({ id: Type.String(), ended: Type.Literal(true) }) },
  },
  endAll: {
    summary: "Ends all sessions of the account, the one that sends this too",
    who: ["session"],
    act: "end sessions",
    answers: { 200: answerOf({ ended: count }) },
  },
} as const satisfies Record<string, About>;
