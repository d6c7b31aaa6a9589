import { expect, test } from "bun:test";
import { build } from "../../src/dashboard/bundle.ts";

/** A quarter more than the 188,264 bytes of the applications before they could search, sort and draw. */
const MAX_BYTES = 235_330;

test("the scripts and the style of both applications have no more bytes together than was agreed", async () => {
  const { files } = await build();
  const sizes = [...files].map(([name, { bytes }]) => [name.replace(/-.*\./, "."), bytes.length] as const);
  const total = sizes.reduce((sum, [, size]) => sum + size, 0);
  expect([total <= MAX_BYTES, total, sizes]).toEqual([true, total, sizes]);
});
