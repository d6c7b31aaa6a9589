/** What an operator may do; each may do what those before it may. docs/operating.md says what that is. */
export const OPERATOR_ROLES = ["read", "operate", "admin"] as const;
export type OperatorRole = (typeof OPERATOR_ROLES)[number];

export const allows = (role: OperatorRole, needed: OperatorRole): boolean =>
  OPERATOR_ROLES.indexOf(role) >= OPERATOR_ROLES.indexOf(needed);

/** Letters, digits and three marks, as in `eve` or `ci.deploy`. */
export const OPERATOR_NAME = "^[a-z][a-z0-9_.-]{0,31}$";

/** Names that stand for others in the log of changes and in suspensions. */
export const TAKEN_NAMES: readonly string[] = ["admin", "gateway", "signal"];
