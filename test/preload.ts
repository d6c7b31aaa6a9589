import { afterAll } from "bun:test";
import { RUN_MARK } from "./environment.ts";
import { endLeftovers } from "./runner/leftovers.ts";

/** What the tests of a plain `bun test` leave running ends with it, as the runner ends it. */
if (process.env[RUN_MARK] === undefined) {
  const mark = crypto.randomUUID();
  process.env[RUN_MARK] = mark;
  afterAll(() => void endLeftovers(mark));
}
