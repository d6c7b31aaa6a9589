import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { cleanEnvironment } from "../../environment.ts";
import { ADMIN, Folder, GatewayProcess, simpleConfig } from "../../process/gateway.ts";
import { product } from "../../process/product.ts";
import { rounds } from "../../rounds.ts";
import { gateway } from "../command.ts";
import { writeNewApi } from "./new-api-database.ts";

/** An import of customers that is killed, by the request at which that happens, and then repeated. */
const folder = new Folder(simpleConfig([9], "price_lists: { vip: [{ model: '*', factor: 0.8 }] }"));
const at = (name: string): string => join(folder.path, name);
/** Credit of each balance after a whole import, in units of new-api's quota. */
const CREDIT_NANO = {
  "user:1": 2_000,
  "user:2": 6_172_839 * 2_000,
  "user:3": 2_500_000 * 2_000,
  "user:4": 0,
};
/** How many requests a whole import takes. */
const REQUESTS = 15;

let running: GatewayProcess;
let proxy: Bun.Server<undefined>;
/** What becomes of the next request. */
let pass: (forward: () => Promise<Response>) => Promise<Response> = (forward) => forward();

beforeAll(async () => {
  writeNewApi(at("one-api.db"));
  running = await GatewayProcess.start(folder);
  proxy = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: async (request) => {
      const { pathname, search } = new URL(request.url);
      const body = request.method === "GET" ? undefined : await request.text();
      const headers = new Headers(request.headers);
      headers.delete("host");
      const { method } = request;
      return pass(async () => {
        const answer = await fetch(running.url + pathname + search, {
          method,
          headers,
          ...(body === undefined ? {} : { body }),
        });
        return new Response(await answer.text(), { status: answer.status });
      });
    },
  });
}, 600_000);
afterAll(async () => {
  await proxy?.stop(true);
  await running?.stop();
  folder.remove();
});

const wordsFor = (source: string): string[] => [
  ...["import", "new-api", "one-api.db", "--source", source, "--customers", `${source}.jsonl`],
];
const environment = () => ({
  GATEWAY_URL: `http://127.0.0.1:${proxy.port}`,
  GATEWAY_ADMIN_TOKEN: ADMIN,
});

type Line = Readonly<Record<string, string>>;
const linesOf = (source: string): Line[] =>
  readFileSync(at(`${source}.jsonl`), "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));

/** Ends it with SIGKILL when its request of this number comes: before the gateway sees it, or when it was carried out. */
async function killedAt(source: string, request: number, when: Moment): Promise<void> {
  const child = Bun.spawn([await product(), ...wordsFor(source)], {
    cwd: folder.path,
    env: { ...cleanEnvironment(), ...environment() },
    stdio: ["ignore", "ignore", "ignore"],
  });
  let seen = 0;
  pass = async (forward) => {
    if (++seen !== request) return forward();
    if (when === "after") await forward();
    child.kill("SIGKILL");
    await child.exited;
    return new Response(null, { status: 500 });
  };
  await child.exited;
  pass = (forward) => forward();
  expect([child.signalCode, seen]).toEqual(["SIGKILL", request]);
}

/** What a whole import leaves, whatever ended earlier ones. */
async function expectWhole(source: string, creditsBefore: bigint): Promise<void> {
  const lines = linesOf(source);
  const balances = lines.filter(({ recovery_secret }) => recovery_secret !== undefined);
  expect(balances.map((line) => line.source)).toEqual(["user:1", "user:2", "user:3", "user:4", "user:6"]);
  expect(new Set(lines.filter(({ done }) => done).map((line) => line.source)).size).toBe(5);
  const keys = lines.filter(({ key_id }) => key_id !== undefined);
  expect(keys.map((line) => line.source)).toEqual(["token:1", "token:2", "token:8"]);
  for (const { source: of, balance_id, recovery_secret, first_key_id } of balances) {
    const { json } = await running.get(`/admin/balances/${balance_id}`, ADMIN);
    const expected = of === "user:6" ? 1_000_000 * 2_000 : CREDIT_NANO[of as keyof typeof CREDIT_NANO];
    expect([of, Math.round(json.credited_usd * 1e9)]).toEqual([of, expected]);
    const { data } = (await running.get("/v1/keys", recovery_secret!)).json;
    const live = data.filter(({ state }: Line) => state === "active").map(({ id }: Line) => id);
    const named = keys.filter((key) => key.balance_id === balance_id).map(({ key_id }) => key_id);
    expect(live.toSorted()).toEqual([...named, first_key_id].toSorted());
  }
  for (const { key, key_id } of keys)
    expect((await running.get("/v1/me", key)).json).toMatchObject({ key: { id: key_id } });
  const { ok, credits_nano } = (await running.audit()).json;
  const all = [...Object.values(CREDIT_NANO), 2_000_000_000].reduce((sum, nano) => sum + nano, 0);
  expect([ok, BigInt(credits_nano) - creditsBefore]).toEqual([true, BigInt(all)]);
}

const credits = async (): Promise<bigint> => BigInt((await running.audit()).json.credits_nano);

type Moment = "before" | "after";
const POINTS = Array.from({ length: REQUESTS }, (_, n) => n + 1).flatMap((request) =>
  (["before", "after"] as const).map((when): [Moment, number] => [when, request]),
);
const STEP = rounds(5, 3, 1);

describe("an import of customers", () => {
  test(`takes ${REQUESTS} requests`, async () => {
    const before = await credits();
    let seen = 0;
    pass = (forward) => {
      seen++;
      return forward();
    };
    const run = await gateway(wordsFor("whole"), environment(), folder.path);
    pass = (forward) => forward();
    expect([run.code, seen]).toEqual([0, REQUESTS]);
    await expectWhole("whole", before);
  }, 60_000);

  test.each(POINTS.filter((_, n) => n % STEP === 0))(
    "killed %s the gateway has carried out its request %d, and repeated",
    async (when, request) => {
      const source = `${when}-${request}`;
      const before = await credits();
      await killedAt(source, request, when);
      const run = await gateway(wordsFor(source), environment(), folder.path);
      expect([run.code, run.err]).toEqual([0, expect.stringContaining("5 balances with 3 keys")]);
      await expectWhole(source, before);
    },
    60_000,
  );

  test("killed again and again, one request later each time", async () => {
    const before = await credits();
    for (const [n, request] of [1, 2, 3, 4, 5, 6].entries())
      await killedAt("often", request, n % 2 === 0 ? "after" : "before");
    expect((await gateway(wordsFor("often"), environment(), folder.path)).code).toBe(0);
    await expectWhole("often", before);
  }, 60_000);

  test.each([2, 5, 8, 12])(
    "whose gateway is killed when it has carried out request %d, goes on once that runs again",
    async (request) => {
      const source = `gateway-${request}`;
      const before = await credits();
      let seen = 0;
      pass = async (forward) => {
        if (++seen !== request) return forward();
        await forward();
        await running.kill();
        return new Response(null, { status: 502 });
      };
      const cut = await gateway(wordsFor(source), environment(), folder.path);
      pass = (forward) => forward();
      expect([cut.code === 0, seen]).toEqual([false, request]);
      running = await GatewayProcess.start(folder);
      expect((await gateway(wordsFor(source), environment(), folder.path)).code).toBe(0);
      await expectWhole(source, before);
    },
    60_000,
  );

  const TORN: [what: string, request: number, torn: (whole: string) => string][] = [
    ["an empty file", 1, () => ""],
    ["half of its first line", 1, (whole) => whole.slice(0, 8)],
    ["half of a balance's line", 4, (whole) => whole.slice(0, -40)],
    ["half of a key's line", 8, (whole) => `${whole}{"source":"token:9","name":"ha`],
  ];
  test.each(TORN)(
    "goes on from %s",
    async (what, request, torn) => {
      const source = what.replaceAll(/[^a-z]/g, "-");
      const before = await credits();
      await killedAt(source, request, "before");
      writeFileSync(at(`${source}.jsonl`), torn(readFileSync(at(`${source}.jsonl`), "utf8")));
      expect((await gateway(wordsFor(source), environment(), folder.path)).code).toBe(0);
      await expectWhole(source, before);
    },
    60_000,
  );
});
