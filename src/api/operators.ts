import { type Static, Type } from "@sinclair/typebox";
import { OPERATOR_NAME, OPERATOR_ROLES } from "../units/operator-roles.ts";
import type { About } from "./about.ts";
import { answerOf, listOf, namedAnswer, oneOf, orNone, time } from "./answers.ts";
import { choice, fieldsOf, orNull, text } from "./fields.ts";

const expiresAt = Type.Optional(
  orNull(text(40, "a time in ISO 8601 with a time zone, or null"), "for no end"),
);

const members = {
  name: Type.String(),
  object: Type.Literal("operator"),
  role: oneOf(OPERATOR_ROLES),
  source: oneOf(
    ["store", "configuration", "environment"],
    "where it is kept; environment: the first admin token",
  ),
  created_at: orNone(time),
  expires_at: orNone(time),
};

const OperatorAnswer = namedAnswer("Operator", members);
export type OperatorAnswer = Static<typeof OperatorAnswer>;

const OperatorWithToken = namedAnswer("OperatorWithToken", {
  ...members,
  token: Type.String({ description: "shown this once" }),
});
export type OperatorWithToken = Static<typeof OperatorWithToken>;

const admin = { who: ["admin"], role: "admin" } as const;

export const OPERATORS = {
  me: {
    who: ["admin"],
    summary: "Shows the operator whose token sends this, with the role",
    answers: { 200: OperatorAnswer },
  },
  list: {
    ...admin,
    summary: "Lists operators, by name",
    answers: { 200: listOf(OperatorAnswer) },
  },
  add: {
    ...admin,
    summary: "Adds an operator with a token of their own",
    details:
      "Only the token's hash is kept. `read` sees everything but secrets; `operate` also changes keys, credit, suspensions, payments and budgets; `admin` also configuration, models, signing keys and operators.",
    body: fieldsOf({
      name: Type.String({
        pattern: OPERATOR_NAME,
        description: "1 to 32 of a-z, 0-9, `_`, `.` and `-`, beginning with a letter",
      }),
      role: choice(OPERATOR_ROLES),
      expires_at: expiresAt,
    }),
    answers: { 201: OperatorWithToken },
  },
  rotate: {
    ...admin,
    summary: "Gives an operator another token; the present one ends at once",
    body: fieldsOf({ expires_at: expiresAt }),
    answers: { 200: OperatorWithToken },
  },
  remove: {
    ...admin,
    summary: "Removes an operator, whose token is refused from the next request on",
    answers: { 200: answerOf({ name: Type.String(), removed: Type.Literal(true) }) },
  },
} as const satisfies Record<string, About>;
