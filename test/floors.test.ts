import { expect, test } from "bun:test";
import { house } from "./architecture/house.ts";
import { STATE } from "./architecture/layout.ts";
import { RULES } from "./architecture/rules.ts";
import { repository, tooFrequent } from "./architecture/words.ts";

/** The rules of `test/architecture` on the source as it is; its own tests show what each of them finds. */
const modules = await house();

test.each(Object.entries(RULES))("%s", (_rule, problemsIn) => {
  expect(problemsIn(modules)).toEqual([]);
});

test("modules that are listed with state have some", () => {
  const stateless = Object.keys(STATE).filter(
    (listed) => !modules.some(({ path, state }) => path === listed && state.length > 0),
  );
  expect(stateless).toEqual([]);
});

test("words with plainer ones do not become more frequent", async () => {
  expect(tooFrequent(await repository())).toEqual([]);
});
