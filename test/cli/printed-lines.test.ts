import { expect, test } from "bun:test";
import { type CommandContext, pairs } from "../../src/cli/console.ts";
import { importModels } from "../../src/cli/models-import.ts";
import { bar, inBatches, withProgress } from "../../src/cli/progress.ts";

test.each<[number, number | null, string]>([
  [0, 12, `[${"·".repeat(24)}] 0/12 asking`],
  [3, 12, `[######${"·".repeat(18)}] 3/12 asking`],
  [12, 12, `[${"#".repeat(24)}] 12/12 asking`],
  // A list that has grown meanwhile.
  [15, 12, `[${"#".repeat(24)}] 15/12 asking`],
  [0, 0, `[${"·".repeat(24)}] 0/0 asking`],
  [5, null, "5 asking"],
])("progress of %p of %p is drawn in full", (done, total, drawn) => {
  expect(bar(done, total, "asking", 80)).toBe(drawn);
});

test("progress is never as wide as the terminal, which would wrap, and has no control characters", () => {
  expect(bar(5, null, "x".repeat(200), 40)).toHaveLength(39);
  expect(bar(1, 2, "\u001b[2Jname", 80)).toEndWith("1/2 \uFFFD[2Jname");
});

test("progress is drawn on a terminal, and cleared whatever comes of the work; elsewhere nothing is", async () => {
  const written: string[] = [];
  const context = { columns: 80 as number | null, err: (text: string) => void written.push(text) };
  const failing = withProgress(context, (progress) =>
    inBatches([1, 2, 3], 2, "asking", progress, async (row) => {
      if (row === 3) throw new Error("down");
      return [row];
    }),
  );
  expect(failing).rejects.toThrow("down");
  await failing.catch(() => {});
  expect(written.map((text) => text.replace(/^.*\] /s, ""))).toEqual([
    "0/3 asking",
    "2/3 asking",
    "\r\u001b[2K",
  ]);
  context.columns = null;
  written.length = 0;
  const found = await withProgress(context, (progress) =>
    inBatches([1, 2, 3], 2, "asking", progress, async (row) => [row, row]),
  );
  expect([found, written]).toEqual([[1, 1, 2, 2, 3, 3], []]);
});

test("values stand below each other, behind the longest name", () => {
  expect(
    pairs([
      ["id", "key_1"],
      ["balance", null],
      ["calls", 3],
    ]),
  ).toEqual(["id       key_1", "balance  -", "calls    3"]);
});

test("rows of known models name a route's quirks only where they are not its host's", async () => {
  let printed = "";
  await importModels({ json: true, host: ["anthropic"], modelsOnly: true }, {
    env: {},
    out: (text: string) => (printed += text),
    err() {},
  } as unknown as CommandContext);
  const { models } = JSON.parse(printed) as { models: { id: string; routes: { quirks?: object }[] }[] };
  const sonnet = models.find(({ id }) => /sonnet-4.6$/.test(id))!;
  expect(sonnet.routes[0]!.quirks).toEqual({ no_sampling: false });
  expect(models.some(({ routes }) => routes[0]!.quirks === undefined)).toBe(true);
});
