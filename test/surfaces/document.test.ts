import { expect, test } from "bun:test";
import { surfacesDocument } from "../../scripts/surfaces-document.ts";

test("docs/surfaces.md is what the tables say (bun run document:surfaces > docs/surfaces.md)", async () => {
  expect(await Bun.file(`${import.meta.dir}/../../docs/surfaces.md`).text()).toBe(surfacesDocument());
});
