import { type Static, Type } from "@sinclair/typebox";
import { AUTHOR_KINDS, CHANGE_ACTIONS } from "../units/change-actions.ts";
import type { About } from "./about.ts";
import * as t from "./schema.ts";

const fields = Type.Unsafe<Readonly<Record<string, unknown>>>(
  Type.Object({}, { additionalProperties: true, description: "the fields that differ; never a secret" }),
);

const ChangeAnswer = t.namedAnswer("Change", {
  id: Type.String(),
  object: Type.Literal("change"),
  at: t.time,
  by: t.object({
    kind: t.oneOf(AUTHOR_KINDS),
    id: t.orNone(t.string("of the key, the account or the balance; of an operator, the name")),
    name: t.orNone(t.string("the key's or the operator's; of an owner, which credential it was")),
  }),
  action: t.oneOf(CHANGE_ACTIONS),
  subject: t.string("the id or name of what was changed"),
  balance_id: t.orNone(Type.String()),
  before: fields,
  after: fields,
  network: t.orNone(t.string("where the request came from: an IPv4 /24 or an IPv6 /48")),
  request_id: t.orNone(t.string("the `x-gateway-receipt` of the request that made it; null for a signal")),
});
export type ChangeAnswer = Static<typeof ChangeAnswer>;

const query = {
  ...t.pageQuery(),
  since: t.string("only changes from this time on, in ISO 8601"),
  until: t.string("only changes before this time, in ISO 8601"),
  by: t.string("only changes by this key, account, balance or operator"),
  action: t.oneOf(CHANGE_ACTIONS, "only such changes"),
  subject: t.string("only changes of what has this id or name"),
};

export const CHANGES = {
  own: {
    summary: "Lists what was changed on the balance, newest first",
    details:
      "Keys, budgets, runs, credits, payments and the balance itself; for a session also what was changed about its account. What an operator changed says neither the name nor the network.",
    who: ["owner"],
    act: "see the log of changes",
    query,
    answers: { 200: t.pageOf(ChangeAnswer) },
  },
  all: {
    summary: "Lists what operators, owners and keys changed, newest first",
    details:
      "Each change is one row, written in the same transaction, and never changed itself. `changes.keep_days` says how long it is kept.",
    who: ["admin"],
    query: {
      ...query,
      balance_id: t.string("only changes on this balance"),
    },
    answers: { 200: t.pageOf(ChangeAnswer) },
  },
} as const satisfies Record<string, About>;
