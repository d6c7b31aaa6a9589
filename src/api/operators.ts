import { type Static, Type } from "@sinclair/typebox";
import { OPERATOR_NAME, OPERATOR_ROLES } from "../units/operator-roles.ts";
import { type About, endpointsWith } from "./about.ts";
import * as t from "./schema.ts";

const expiresAt = Type.Optional(
  t.orNull(t.text(40, "a time in ISO 8601 with a time zone, or null"), "for no end"),
);

const members = {
  name: Type.String(),
  object: Type.Literal("operator"),
  role: t.oneOf(OPERATOR_ROLES),
  source: t.oneOf(
    ["store", "configuration", "environment"],
    "where it is kept; environment: the first admin token",
  ),
  created_at: t.orNone(t.time),
  expires_at: t.orNone(t.time),
};

const OperatorAnswer = t.namedAnswer("Operator", members);
export type OperatorAnswer = Static<typeof OperatorAnswer>;

const OperatorWithToken = t.namedAnswer("OperatorWithToken", {
  ...members,
  token: t.string("shown this once"),
});
export type OperatorWithToken = Static<typeof OperatorWithToken>;

export const OPERATORS = endpointsWith(
  { who: ["admin"], role: "admin" },
  {
    me: {
      role: "read",
      summary: "Shows the operator whose token sends this, with the role",
      answers: { 200: OperatorAnswer },
    },
    list: {
      summary: "Lists operators, by name",
      answers: { 200: t.listOf(OperatorAnswer) },
    },
    add: {
      summary: "Adds an operator with a token of their own",
      details:
        "Only the token's hash is kept. `read` sees everything but secrets; `operate` also changes keys, credit, suspensions, payments and budgets; `admin` also configuration, models, signing keys and operators.",
      body: t.object({
        name: Type.String({
          pattern: OPERATOR_NAME,
          description: "1 to 32 of a-z, 0-9, `_`, `.` and `-`, beginning with a letter",
        }),
        role: t.choice(OPERATOR_ROLES),
        expires_at: expiresAt,
      }),
      answers: { 201: OperatorWithToken },
    },
    rotate: {
      summary: "Gives an operator another token; the present one ends at once",
      body: t.object({ expires_at: expiresAt }),
      answers: { 200: OperatorWithToken },
    },
    remove: {
      summary: "Removes an operator, whose token is refused from the next request on",
      answers: { 200: t.object({ name: Type.String(), removed: Type.Literal(true) }) },
    },
  },
) satisfies Record<string, About>;
