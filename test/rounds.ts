/** How often something random is tried: a few times in `npm test`, and often in `.ci/run`, which runs all there is. */
export const rounds = (few: number, many: number): number =>
  process.env[MANY_ROUNDS] === undefined ? few : many;

export const MANY_ROUNDS = "GATEWAY_TEST_MANY_ROUNDS";
