import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { gateway as command, type Run } from "../../cli/command.ts";
import { json } from "../../fakes/behaviours.ts";
import { startFakeHost } from "../../fakes/host.ts";
import { chatText } from "../../fakes/transcripts.ts";
import { until } from "../../fakes/until.ts";
import { ADMIN, Folder, GatewayProcess, simpleConfig } from "../../process/gateway.ts";
import { rounds } from "../../rounds.ts";
import { workersOf } from "./processes.ts";

const NEW = "anthropic/claude-sonnet-5-5";
const REQUESTS = rounds(600, 2_000, 10_000);
const AT_ONCE = 12;
/** What the host reports for each request. */
const USAGE = { input: 10, output: 1 };

const NO_LIMITS =
  "defaults: { accountless: { rpm_limit: null, tpm_limit: null, daily_limit_usd: null, monthly_limit_usd: null } }\n";

/** What a list sells the new model at, in USD per million tokens. */
const listAt = (input: number) => `models:
  - id: ${NEW}
    name: Claude Sonnet 5.5
    context_length: 1000000
    max_output_tokens: 128000
    price: { input: ${input}, output: ${10 * input} }
    routes: [{ host: h0, model: claude-sonnet-5-5 }]
`;
const chat = (model: string) => ({ model, max_tokens: 10, messages: [{ role: "user", content: "Hello" }] });

/** Three processes on a store, and a newer list of models next to the file that they were started with. */
export function testModelLists(store: () => Promise<string>): void {
  test("a list is applied by one command on all processes, no request has two prices, and a restart keeps it", async () => {
    const host = await startFakeHost(() => json(chatText(["ok"], USAGE).whole));
    const folder = new Folder(simpleConfig([host.port], `store: ${await store()}\nworkers: 3\n${NO_LIMITS}`));
    let running = await GatewayProcess.start(folder);
    const list = join(folder.path, "models.yaml");
    const sync = (...args: string[]): Promise<Run> =>
      command(["models", "sync", ...args], { GATEWAY_URL: running.url, GATEWAY_ADMIN_TOKEN: ADMIN });
    const apply = async (input: number): Promise<string> => {
      writeFileSync(list, listAt(input));
      const { out, err, code } = await sync(list, "--apply");
      expect([code, err]).toEqual([0, ""]);
      return out;
    };
    try {
      expect(workersOf(running.pid)).toHaveLength(3);
      const { key } = await running.keyWith(100);
      const send = () => running.post("/v1/chat/completions", chat(NEW), key);
      expect((await send()).json.error.code).toBe("unknown_model");

      writeFileSync(list, listAt(1));
      const shown = await sync(list);
      expect([shown.code, shown.out]).toEqual([0, expect.stringContaining(`new      ${NEW} at h0`)]);
      expect((await send()).json.error.code).toBe("unknown_model");
      expect(await apply(1)).toContain("Version 1 is in force, in all processes");
      // Each connection may reach another process.
      for (let request = 0; request < 30; request++) expect((await send()).status).toBe(200);

      let sent = 30;
      let over = false;
      const failed: number[] = [];
      const customers = Array.from({ length: AT_ONCE }, async () => {
        while (sent++ < REQUESTS) {
          const { status } = await send();
          if (status !== 200) failed.push(status);
        }
        over = true;
      });
      let input = 1;
      while (!over) {
        input = input === 1 ? 2 : 1;
        await apply(input);
      }
      await Promise.all(customers);
      expect(failed).toEqual([]);

      // Other nodes' receipts are in the books a moment after their answers.
      let receipts: Awaited<ReturnType<typeof receiptsOf>> = [];
      await until(async () => {
        receipts = await receiptsOf(running, key);
        return receipts.length >= REQUESTS;
      });
      const versions = new Map<string, Set<number>>();
      for (const { price, cost_usd, held_usd, tokens } of receipts) {
        expect(price.output).toBe(10 * price.input);
        const cost = (tokens.input * price.input + tokens.output * price.output) / 1e6;
        expect(cost_usd).toBeCloseTo(cost, 12);
        expect(held_usd).toBeGreaterThanOrEqual(cost_usd);
        versions.set(price.version, (versions.get(price.version) ?? new Set()).add(price.input));
      }
      // Both prices were sold at, and each name of a version stands for one of them.
      expect([...versions.values()].map((prices) => [...prices]).sort()).toEqual([[1], [2]]);
      expect((await running.audit()).json).toMatchObject({ ok: true, drift_nano: "0" });

      await poisoned(list, sync, running);

      expect((await sync("--undo")).out).toContain("is in force");
      await expectChainOfPrices(running);
      const undone = await priceNow(running, key);
      expect(undone).toBe(input === 1 ? 2 : 1);
      expect(await running.stop()).toBe(0);
      running = await GatewayProcess.start(folder);
      expect(await priceNow(running, key)).toBe(undone);
    } finally {
      await running.kill();
      folder.remove();
      await host.close();
    }
  }, 600_000);
}

async function priceNow(running: GatewayProcess, key: string): Promise<number> {
  const { json: models } = await running.get("/v1/catalog", key);
  return models.data.find(({ id }: { id: string }) => id === NEW).price.input;
}

async function receiptsOf(running: GatewayProcess, key: string) {
  // biome-ignore lint/suspicious/noExplicitAny: what the server said
  const receipts: any[] = [];
  for (let before = ""; ; ) {
    const { json: page } = await running.get(`/v1/receipts?limit=100${before}`, key);
    receipts.push(...page.data.filter(({ state }: { state: string }) => state === "settled"));
    if (!page.has_more) return receipts;
    before = `&before=${page.data.at(-1).id}`;
  }
}

/** Lists that must change nothing, each for its own reason. */
const POISONS: readonly (readonly [text: string, reason: string | RegExp])[] = [
  [listAt(0), "price is 0"],
  [listAt(-3), "price.input is not"],
  [listAt(50), "differs by a factor of 10"],
  [listAt(0.1), "differs by a factor of 10"],
  [listAt(1e12), "price.input"],
  [listAt(Number.NaN).replaceAll("NaN", ".nan"), "price.input"],
  [listAt(1).replace("context_length: 1000000", "context_length: 1000"), "context_length shrinks"],
  [listAt(1).replace("context_length: 1000000", "context_length: many"), "context_length is not"],
  [listAt(1) + listAt(2).replace("models:\n", ""), "more than once"],
  [JSON.stringify({ data: [{ id: NEW, pricing: { prompt: "0.00" } }] }).slice(0, -9), "cannot be read"],
];

async function poisoned(
  list: string,
  sync: (...args: string[]) => Promise<Run>,
  running: GatewayProcess,
): Promise<void> {
  const before = await running.get("/admin/config", ADMIN);
  for (const [text, reason] of POISONS) {
    writeFileSync(list, text);
    const { out, err } = await sync(list, "--apply", "--host", "h0");
    expect(out + err).toMatch(reason);
  }
  writeFileSync(list, " ".repeat(100_000_000));
  expect((await sync(list, "--apply")).err).toContain("has more than 16777216 bytes");
  await until(async () => (await running.get("/readyz")).status === 200);
  expect((await running.get("/admin/config", ADMIN)).json).toEqual(before.json);
}

/** Each change of prices is one event of all processes, which begins where the one before it ended. */
async function expectChainOfPrices(running: GatewayProcess): Promise<void> {
  const { data } = (await running.get("/admin/events?type=price.changed&limit=200", ADMIN)).json;
  expect(data.length).toBeGreaterThan(1);
  for (const [at, { data: change }] of data.slice(0, -1).entries())
    expect(change.previous_price_version).toBe(data[at + 1].data.price_version);
}
