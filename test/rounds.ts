/**
 * How often something random is tried: a few times in `npm test`, often in `.ci/run`, which runs all there is, and, where
 * that would take an hour, most often with `npm test -- --thorough`.
 */
export const rounds = (few: number, many: number, most = many): number =>
  ({ many, most })[process.env[MANY_ROUNDS] ?? ""] ?? few;

export const MANY_ROUNDS = "GATEWAY_TEST_MANY_ROUNDS";
