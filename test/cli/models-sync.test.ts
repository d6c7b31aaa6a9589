import { afterAll, expect, test } from "bun:test";
import { ADMIN, Folder, GatewayProcess, simpleConfig } from "../process/gateway.ts";
import { gateway, type Run } from "./command.ts";

const MEGABYTE = 1024 * 1024;
const row = (id: string, prompt: string, completion: string) => ({
  id,
  name: id,
  context_length: 200_000,
  architecture: { input_modalities: ["text"], output_modalities: ["text"] },
  pricing: { prompt, completion },
  top_provider: { context_length: 200_000, max_completion_tokens: 8_000 },
});
let rows: object[] = [];
/** A provider's list, and what else may be at an address. */
const lists: Bun.Server<undefined> = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  fetch({ url }) {
    const { pathname } = new URL(url);
    if (pathname === "/models") return Response.json({ data: rows });
    if (pathname === "/moved") return Response.redirect(`${lists.url}models`);
    if (pathname === "/endless") {
      const megabyte = new Uint8Array(MEGABYTE).fill(32);
      return new Response(new ReadableStream({ pull: (to) => to.enqueue(megabyte) }));
    }
    return new Response("no such page", { status: 404 });
  },
});
const folder = new Folder(simpleConfig([9]));
const running = await GatewayProcess.start(folder);
afterAll(async () => {
  await running.stop();
  folder.remove();
  await lists.stop(true);
});

const sync = (...args: string[]): Promise<Run> =>
  gateway(["models", "sync", ...args], { GATEWAY_URL: running.url, GATEWAY_ADMIN_TOKEN: ADMIN });
const onOffer = async (): Promise<string[]> =>
  (await running.get("/admin/config", ADMIN)).json.models.map(({ id }: { id: string }) => id).sort();

test("a list at an address is shown, and applied without what looks wrong until that is accepted by name", async () => {
  rows = [row("a/good", "0.000001", "0.000002"), row("b/costly", "0.01", "0.02"), row("c/auto", "-1", "-1")];
  const from = [`${lists.url}models`, "--host", "h0"];
  const shown = await sync(...from);
  expect(shown.code).toBe(0);
  for (const line of [
    "new      a/good at h0\n  price.input: 1\n  price.output: 2\n",
    "  context_length: 200000\n  max_output_tokens: 8000\n",
    "  held back: price.input is above 1000 USD: 10000",
    'refused  c/auto at h0\n  because: pricing.prompt is "-1"',
    "gone     test/model at h0",
    "Nothing was changed. --apply would apply 1 model.",
  ])
    expect(shown.out).toContain(line);
  expect(await onOffer()).toEqual(["test/model"]);

  const applied = await sync(...from, "--apply");
  expect([applied.code, applied.err]).toEqual([1, expect.stringContaining("1 model held back: b/costly")]);
  expect(await onOffer()).toEqual(["a/good", "test/model"]);

  expect((await sync(...from, "--apply", "--accept", "b/costly")).code).toBe(0);
  expect(await onOffer()).toEqual(["a/good", "b/costly", "test/model"]);
});

test("config check and models try know the models that only a list has", async () => {
  const { GATEWAY_CONFIG, GATEWAY_DATA } = folder.env;
  const here = { GATEWAY_CONFIG: GATEWAY_CONFIG!, GATEWAY_DATA: GATEWAY_DATA! };
  const checked = JSON.parse((await gateway(["config", "check", "--json"], here)).out);
  expect(checked).toMatchObject({ models: 3, listed_models: 2 });
  expect(checked.doubtful_prices.join()).toContain("b/costly at h0");
  expect((await gateway(["config", "check"], here)).out).toContain("3, 2 by model lists");
  // Nobody is at that port.
  const { findings } = JSON.parse((await gateway(["models", "try", "a/good", "--json"], here)).out);
  expect(findings).toMatchObject([{ check: "a/good at h0, chat.completions", state: "fail" }]);
  // Before the first start, there is no store.
  const elsewhere = { ...here, GATEWAY_DATA: `${GATEWAY_DATA}/none` };
  expect(JSON.parse((await gateway(["config", "check", "--json"], elsewhere)).out).listed_models).toBe(0);
});

test("going back takes one list away at a time, to the models of the configuration", async () => {
  const versions: string[] = [];
  for (let left = 2; left > 0; left--) versions.push((await sync("--undo")).out);
  expect(versions[1]).toContain("the models of the configuration alone");
  expect(await onOffer()).toEqual(["test/model"]);
  const none = await sync("--undo");
  expect([none.code, none.err]).toEqual([3, expect.stringContaining("No model list is applied")]);
});

test("only those that match are taken", async () => {
  rows = [row("a/good", "0.000001", "0.000002"), row("a/other", "0.000001", "0.000002")];
  const run = await sync(`${lists.url}models`, "--host", "h0", "--match", "other", "--apply");
  expect([run.code, await onOffer()]).toEqual([0, ["a/other", "test/model"]]);
});

test.each([
  ["moved", ["moved"], 4, "answered 302"],
  ["missing", ["nowhere"], 4, "answered 404"],
  ["without end", ["endless"], 1, "has more than 16777216 bytes"],
])("an address that is %s changes nothing", async (_, [path], code, message) => {
  const before = await onOffer();
  const run = await sync(`${lists.url}${path}`, "--host", "h0", "--apply");
  expect([run.code, run.err]).toEqual([code, expect.stringContaining(message)]);
  expect(await onOffer()).toEqual(before);
});

test("a model that is accepted has to be one that was held back", async () => {
  const run = await sync(`${lists.url}models`, "--host", "h0", "--apply", "--accept", "a/typo");
  expect([run.code, run.err]).toEqual([3, expect.stringContaining("no doubtful model `a/typo`")]);
});

test("without a list there is a hint", async () => {
  const run = await sync();
  expect([run.code, run.err]).toEqual([2, expect.stringContaining("Name a file or an address")]);
});
