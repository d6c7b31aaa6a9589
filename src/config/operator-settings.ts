import { OPERATOR_NAME, OPERATOR_ROLES, TAKEN_NAMES } from "../units/operator-roles.ts";
import { hashSecret, type SecretHash } from "../units/secret-hash.ts";
import { oneOf, secret, text } from "./kinds.ts";
import { describe, type Path, type ReportProblem } from "./problem.ts";
import { listOf, mapOf, required } from "./setting.ts";

const HASHED = "sha256:";

const TOKEN = {
  ...secret(
    "a token of at least 16 characters, or sha256: and its SHA-256 in 64 digits",
    `^(${HASHED}[0-9a-f]{64}|(?!${HASHED})\\S{16,})$`,
  ),
  read: (written: string): SecretHash =>
    written.startsWith(HASHED) ? (written.slice(HASHED.length) as SecretHash) : hashSecret(written),
};

const OPERATOR = mapOf(
  {
    name: required(
      text("a name of lower-case letters, digits, `_`, `.` and `-`", OPERATOR_NAME),
      "who it is, in the log of changes",
    ),
    role: required(
      oneOf(OPERATOR_ROLES),
      "`read`, `operate` or `admin`: what they [may do](operating.md#operators)",
    ),
    token: required(
      TOKEN,
      "at least 16 characters, from a variable; or `sha256:` and its SHA-256 in hexadecimal, so that the file holds no secret",
    ),
  },
  "an operator: { name, role, token }",
);

const LIST = listOf(OPERATOR, "a list of at least one operator");

/** The list `operators`: people and programs with tokens of their own. */
export const OPERATORS = {
  ...LIST,
  read(written: Parameters<typeof LIST.read>[0], path: Path, report: ReportProblem) {
    const operators = LIST.read(written, path, report);
    for (const [index, { name, token }] of operators.entries()) {
      const others = operators.slice(0, index);
      if (TAKEN_NAMES.includes(name) || others.some((other) => other.name === name))
        report([...path, index, "name"], describe(name), "a name that is not taken");
      else if (others.some((other) => other.token === token))
        report([...path, index, "token"], "the token of another", "a token that no other operator has");
    }
    return operators;
  },
};
