import { afterAll, beforeAll, expect, test } from "bun:test";
import { json } from "../fakes/behaviours.ts";
import { type FakeHost, startFakeHost } from "../fakes/host.ts";
import { oneHost } from "../fakes/one-host.ts";
import { chatText } from "../fakes/transcripts.ts";
import { until } from "../fakes/until.ts";
import { ADMIN, Folder, GatewayProcess } from "../process/gateway.ts";
import { Random } from "../sim/random.ts";
import { describeOnOwnPostgres } from "./fixture.ts";
import { PostgresWire } from "./wire.ts";

/**
 * Three gateways, each a process of its own, and a PostgreSQL, all of which are ended, paused and started again
 * under load. What clients saw is judged afterwards: against the receipts, the caps and the books. A request
 * holds $0.001 and costs $0.0006.
 */
describeOnOwnPostgres("three gateways and a PostgreSQL that fail under load", (cluster) => {
  let host: FakeHost;
  let folders: Folder[];
  let gateways: GatewayProcess[];
  /** The third node's connection. */
  let wire: PostgresWire;
  const random = new Random(11);

  beforeAll(async () => {
    const { whole } = chatText(["ok"], { input: 10, output: 60 });
    host = await startFakeHost(() => json(whole));
    const store = await cluster.database();
    wire = await PostgresWire.start(cluster.port);
    const wired = store.replace(`:${cluster.port}/`, `:${wire.port}/`);
    folders = [store, store, wired].map((address) => new Folder(config(host.url, address)));
    gateways = await Promise.all(folders.map(start));
  }, 600_000);
  afterAll(async () => {
    for (const gateway of gateways ?? []) await gateway.kill();
    for (const folder of folders ?? []) folder.remove();
    await host.close();
    wire.close();
  }, 600_000);

  const start = (folder: Folder) => GatewayProcess.start(folder);
  const send = async (at: number, key: string): Promise<Seen> => {
    const body = { model: "test/model", max_tokens: 100, messages: [{ role: "user", content: "Hello" }] };
    try {
      const reply = await gateways[at]!.post("/v1/chat/completions", body, key);
      return { status: reply.status, receipt: reply.headers.get("x-gateway-receipt") };
    } catch {
      // The connection broke, or there was nobody: what became of the request, the books will say.
      return { status: 0, receipt: null };
    }
  };

  const allReady = () =>
    until(async () => {
      const replies = await Promise.all(gateways.map((gateway) => gateway.get("/readyz")));
      return replies.every(({ status }) => status === 200);
    });
  const allInOrder = async () => {
    for (const gateway of gateways) {
      expect((await gateway.audit()).json).toMatchObject({ ok: true, drift_nano: "0" });
    }
  };

  test("no cap is crossed, no answered request lost, and the books agree", async () => {
    const owner = await gateways[0]!.keyWith(0.6);
    const capped = await gateways[1]!.keyWith(5);
    await gateways[1]!.send(
      "PATCH",
      `/v1/keys/${capped.id}`,
      { daily_limit_usd: 0.3 },
      capped.recovery_secret,
    );
    const keys = [owner.key, capped.key];

    const seen: Seen[] = [];
    let loading = true;
    const clients = Array.from({ length: 12 }, async (_, client) => {
      while (loading) {
        seen.push(await send(random.below(3), keys[client % 2]!));
        await Bun.sleep(10);
      }
    });

    for (let round = 0; round < 3; round++) {
      const victim = random.below(3);
      await gateways[victim]!.kill();
      gateways[victim] = await start(folders[victim]!);

      const paused = gateways[random.below(3)]!;
      paused.signal("SIGSTOP");
      await Bun.sleep(300);
      paused.signal("SIGCONT");

      await cluster.end(round % 2 === 0 ? "immediate" : "fast");
      await Bun.sleep(200);
      await cluster.begin();
      await allReady();
    }
    loading = false;
    await Promise.all(clients);
    await allReady();

    await allInOrder();
    expect(seen.filter(({ status }) => status === 401)).toEqual([]);
    const answered = seen.filter(({ status }) => status === 200);
    expect(answered.length).toBeGreaterThan(50);
    const receipts = new Map<string, { state: string; cost_usd: number }>();
    for (const secret of [owner.recovery_secret, capped.recovery_secret]) {
      for (const one of await allReceipts(gateways[2]!, secret)) receipts.set(one.id, one);
    }
    for (const { receipt } of answered) expect(receipts.get(receipt!)?.state).toBe("settled");

    // The last to be answered are on their way to the other nodes' books.
    expect(await drain(0, owner.key)).toBe(402);
    const balance = async (): Promise<number> =>
      (await gateways[1]!.get("/v1/me", owner.key)).json.balance_usd;
    await until(async () => (await balance()) < 0.001);
    expect(await balance()).toBeGreaterThanOrEqual(0);
    expect(await drain(1, capped.key)).toBe(429);
    const used = async (): Promise<number> =>
      (await gateways[2]!.get("/v1/me", capped.key)).json.key.used_day_usd;
    await until(async () => (await used()) > 0.299);
    expect(await used()).toBeLessThanOrEqual(0.3);
    await allInOrder();
  }, 600_000);

  /** Spends what is left, until no worst case fits any more; returns the status that says so. */
  async function drain(at: number, key: string): Promise<number> {
    for (let request = 0; request < 1_200; request++) {
      const { status } = await send(at, key);
      if (status !== 200) return status;
    }
    return 200;
  }

  test("a revoke waits for a node that is paused no longer than its lease, which then accepts nothing", async () => {
    const { id, key } = await gateways[0]!.keyWith(1);
    for (const at of [0, 1, 2]) expect((await send(at, key)).status).toBe(200);
    gateways[1]!.signal("SIGSTOP");
    const revoked = await gateways[0]!.send("DELETE", `/v1/keys/${id}`, undefined, key);
    expect(revoked.status).toBe(200);
    expect((await send(2, key)).status).toBe(401);
    gateways[1]!.signal("SIGCONT");
    // It may not know yet that the key is revoked; it does know that it must not trust itself.
    expect([401, 500]).toContain((await send(1, key)).status);
    await allReady();
    expect((await send(1, key)).status).toBe(401);
  }, 600_000);

  test("all credit but what a paused node was granted is taken back, and that when it is there again", async () => {
    const { key, balance_id } = await gateways[0]!.keyWith(1);
    for (const at of [0, 1, 2]) expect((await send(at, key)).status).toBe(200);
    const takeAll = async () => {
      const body = { balance_id, amount_usd: "all", idempotency_key: crypto.randomUUID() };
      const { status, json } = await gateways[0]!.post("/admin/debits", body, ADMIN);
      expect(status).toBe(200);
      return json.amount_usd as number;
    };
    gateways[1]!.signal("SIGSTOP");
    const first = await takeAll();
    expect(first).toBeLessThan(1);
    expect(first).toBeGreaterThan(0.9);
    expect([402, 500]).toContain((await send(2, key)).status);
    gateways[1]!.signal("SIGCONT");
    await allReady();
    expect((await send(1, key)).status).toBe(200);
    const rest = await takeAll();
    for (const at of [0, 1, 2]) expect((await send(at, key)).status).toBe(402);
    const me = (await gateways[1]!.get("/v1/me", key)).json;
    expect(me.balance_usd).toBe(0);
    const spent = (await allReceipts(gateways[0]!, key)).reduce((sum, { cost_usd }) => sum + cost_usd, 0);
    expect(first + rest + spent).toBeCloseTo(1, 9);
    await allInOrder();
  }, 600_000);

  test("a node that is cut off accepts nothing once its lease has run out, and owes nothing when it is back", async () => {
    const { id, key } = await gateways[0]!.keyWith(1);
    for (const at of [0, 1, 2]) expect((await send(at, key)).status).toBe(200);
    wire.cut();
    expect((await send(2, key)).status).toBe(200);
    const revoked = await gateways[0]!.send("DELETE", `/v1/keys/${id}`, undefined, key);
    expect(revoked.status).toBe(200);
    expect((await send(1, key)).status).toBe(401);
    expect((await send(2, key)).status).toBe(500);
    wire.heal();
    await allReady();
    expect((await send(2, key)).status).toBe(401);
    // What it holds can be had by others again, at once.
    const other = await gateways[2]!.keyWith(0.002);
    expect((await send(2, other.key)).status).toBe(200);
    await until(async () => (await send(0, other.key)).status === 200);
    await allInOrder();
  }, 600_000);

  test("while PostgreSQL is away, grants go on being spent; then retryable errors, never 401; then all is well", async () => {
    const { key } = await gateways[0]!.keyWith(1);
    for (let request = 0; request < 3; request++) expect((await send(0, key)).status).toBe(200);
    await cluster.end("immediate");
    expect((await send(0, key)).status).toBe(200);
    const statuses = new Set<number>();
    await until(async () => {
      statuses.add((await send(0, key)).status);
      return statuses.has(500);
    });
    expect([...statuses].sort()).toEqual([200, 500]);
    await cluster.begin();
    await allReady();
    expect((await send(0, key)).status).toBe(200);
    await allInOrder();
  }, 600_000);

  test("a node that never comes back keeps its grants until it is closed, which is refused while it lives", async () => {
    // What is asked for ahead of need comes to all of it, and with any less it would be given back at once.
    const { key } = await gateways[0]!.keyWith(0.009);
    expect((await send(2, key)).status).toBe(200);
    const admin = (path: string) => gateways[0]!.post(path, {}, ADMIN);
    const nodes = async (): Promise<{ id: string; state: string; reserved_usd: number }[]> =>
      (await gateways[0]!.get("/admin/nodes", ADMIN)).json.data;
    const before = await nodes();
    expect(before.map(({ state }) => state)).toEqual(["alive", "alive", "alive"]);
    await gateways[2]!.kill();
    await until(async () => (await nodes()).some(({ state }) => state === "silent"));
    const lost = (await nodes()).find(({ state }) => state === "silent")!;
    expect(lost.reserved_usd).toBeGreaterThan(0);
    expect((await send(0, key)).status).toBe(402);
    const alive = (await nodes()).find(({ state }) => state === "alive")!;
    expect((await admin(`/admin/nodes/${alive.id}/close`)).status).toBe(400);
    expect((await admin("/admin/nodes/node_none/close")).status).toBe(400);
    expect((await admin(`/admin/nodes/${lost.id}/close`)).json).toEqual({ id: lost.id, state: "left" });
    expect((await send(0, key)).status).toBe(200);
    gateways[2] = await start(folders[2]!);
    expect((await send(2, key)).status).toBe(200);
    await allInOrder();
  }, 600_000);

  test("a node that leaves gives everything back, and costs no client an answer", async () => {
    const { key } = await gateways[0]!.keyWith(0.01);
    expect((await send(2, key)).status).toBe(200);
    expect(await gateways[2]!.stop()).toBe(0);
    let served = 0;
    while ((await send(0, key)).status === 200) served += 1;
    // $0.0094 are left: 14 leave $0.001, which is one more.
    expect(served).toBe(15);
    gateways[2] = await start(folders[2]!);
    await allInOrder();
  }, 600_000);
});

interface Seen {
  readonly status: number;
  readonly receipt: string | null;
}

async function allReceipts(
  gateway: GatewayProcess,
  secret: string,
): Promise<{ id: string; state: string; cost_usd: number }[]> {
  const all: { id: string; state: string; cost_usd: number }[] = [];
  for (let before = ""; ; ) {
    const page = (await gateway.get(`/v1/receipts?limit=100${before}`, secret)).json;
    all.push(...page.data);
    if (!page.has_more) return all;
    before = `&before=${page.next_before ?? page.data.at(-1).id}`;
  }
}

const config = (hostUrl: string, store: string): string => `${oneHost(hostUrl)}
setup: { accountless_keys_per_address_per_hour: 1000 }
store: ${store}
`;
