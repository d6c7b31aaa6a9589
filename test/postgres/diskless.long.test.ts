import { afterAll, beforeAll, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { json, sse } from "../fakes/behaviours.ts";
import { type Gate, gate } from "../fakes/gate.ts";
import { type FakeHost, startFakeHost } from "../fakes/host.ts";
import { oneHost } from "../fakes/one-host.ts";
import { chatText } from "../fakes/transcripts.ts";
import { until } from "../fakes/until.ts";
import { ADMIN, Folder, GatewayProcess } from "../process/gateway.ts";
import { describeOnOwnPostgres } from "./fixture.ts";

/**
 * Gateways with `journal: postgres` on one PostgreSQL, killed, paused and left without it under load. A
 * request holds $0.001 and costs $0.0006. Half of the requests are streams of 60 words.
 */
describeOnOwnPostgres("gateways that keep nothing on disk", (cluster) => {
  let host: FakeHost;
  let folders: Folder[];
  let gateways: GatewayProcess[];
  /** Streams whose prompt says "wait" wait for it after their first word. */
  let held: Gate<void>;

  beforeAll(async () => {
    const answer = chatText(Array(60).fill("word "), { input: 10, output: 60 });
    held = gate();
    host = await startFakeHost((request) => {
      const { stream, messages } = request.json();
      if (stream !== true) return json(answer.whole);
      const waits = messages[0].content === "wait";
      return sse(answer.events, {
        before: (n) => (n === 20 ? (waits ? held.passed : Bun.sleep(5)) : undefined),
      });
    });
    const store = await cluster.database();
    folders = [0, 1].map(() => new Folder(config(host.url, store)));
    gateways = await Promise.all(folders.map(start));
  }, 600_000);
  afterAll(async () => {
    for (const gateway of gateways ?? []) await gateway.kill();
    for (const folder of folders ?? []) folder.remove();
    await host.close();
  }, 600_000);

  const start = (folder: Folder) => GatewayProcess.start(folder);
  const body = (stream: boolean, content: string) => ({
    model: "test/model",
    max_tokens: 100,
    stream,
    messages: [{ role: "user", content }],
  });
  const send = async (
    at: number,
    key: string,
    stream: boolean,
    content = "Hello",
    began = () => {},
  ): Promise<Seen> => {
    const seen: Seen = { status: 0, receipt: null, bytes: 0, ended: false };
    try {
      const response = await fetch(`${gateways[at]!.url}/v1/chat/completions`, {
        method: "POST",
        headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
        body: JSON.stringify(body(stream, content)),
      });
      seen.status = response.status;
      seen.receipt = response.headers.get("x-gateway-receipt");
      let text = "";
      const decoder = new TextDecoder();
      for await (const chunk of response.body!) {
        if (seen.bytes === 0) began();
        seen.bytes += chunk.length;
        text += decoder.decode(chunk, { stream: true });
      }
      seen.ended = stream ? text.endsWith("data: [DONE]\n\n") : response.status === 200;
    } catch {
      // The connection broke, or there was nobody: what became of the request, the books will say.
    }
    return seen;
  };

  /** Asks both kinds of both gateways until stopped. */
  function load(key: string): { more(answers: number): Promise<void>; stop(): Promise<Seen[]> } {
    const all: Seen[] = [];
    let loading = true;
    const clients = Array.from({ length: 8 }, async (_, client) => {
      while (loading) {
        const seen = await send(client % 2, key, client % 4 < 2);
        all.push(seen);
        if (seen.status !== 200) await Bun.sleep(20);
      }
    });
    return {
      more(answers) {
        const enough = all.filter(({ ended }) => ended).length + answers;
        return until(() => all.filter(({ ended }) => ended).length >= enough);
      },
      async stop() {
        loading = false;
        await Promise.all(clients);
        return all;
      },
    };
  }

  const nodes = async (): Promise<{ id: string; state: string }[]> =>
    (await gateways[0]!.get("/admin/nodes", ADMIN)).json.data;
  const inOrder = async () => {
    for (const gateway of gateways) {
      await until(async () => (await gateway.get("/readyz")).status === 200);
      expect((await gateway.audit()).json).toMatchObject({ ok: true, drift_nano: "0" });
    }
  };
  /** Everything that was answered whole is charged; everything that was started has a receipt. */
  async function judge(key: string, all: readonly Seen[]): Promise<void> {
    for (const { receipt, ended, bytes, status } of all) {
      if (status !== 200 || (!ended && bytes === 0)) continue;
      const found = await gateways[0]!.get(`/v1/receipts/${receipt}`, key);
      expect(found.status).toBe(200);
      if (ended) expect(found.json).toMatchObject({ state: "settled", cost_usd: 0.0006 });
    }
  }
  /** Spends what is left, until no worst case fits: wherever it was granted, it comes back. */
  async function drain(key: string): Promise<void> {
    const spend = async () => {
      for (;;) {
        const { status } = await send(0, key, false);
        if (status === 402) return;
        expect(status).toBe(200);
      }
    };
    await Promise.all(Array.from({ length: 8 }, spend));
    await spend();
    const me = (await gateways[0]!.get("/v1/me", key)).json;
    expect(me.balance_usd).toBeGreaterThanOrEqual(0);
    expect(me.balance_usd).toBeLessThan(0.001);
  }

  test("one is killed under load: the other closes it, nothing answered is lost, and all of the credit can be spent", async () => {
    const { key } = await gateways[0]!.keyWith(4);
    const clients = load(key);
    for (let kill = 0; kill < 3; kill++) {
      await clients.more(40);
      await gateways[1]!.kill();
      gateways[1] = await start(folders[1]!);
    }
    await clients.more(40);
    const seen = await clients.stop();
    await until(async () => (await nodes()).filter(({ state }) => state === "left").length === 3);
    expect((await nodes()).filter(({ state }) => state === "alive")).toHaveLength(2);
    await judge(key, seen);
    await inOrder();

    await drain(key);
    await inOrder();
  }, 600_000);

  test("nothing is written to a data folder", () => {
    for (const folder of folders) expect(existsSync(join(folder.path, "data"))).toBe(false);
  });

  test("PostgreSQL restarts under load: clients wait and see no error", async () => {
    const { key } = await gateways[0]!.keyWith(50);
    const clients = load(key);
    for (const mode of ["fast", "immediate"] as const) {
      await clients.more(20);
      await cluster.end(mode);
      await Bun.sleep(300);
      await cluster.begin();
    }
    await clients.more(20);
    const seen = await clients.stop();
    expect(seen.filter(({ ended }) => !ended)).toEqual([]);
    await judge(key, seen);
    await inOrder();
  }, 600_000);

  test("PostgreSQL is away for longer than a node may be: all go on as they were, and a stream ends as it should", async () => {
    const { key } = await gateways[1]!.keyWith(1);
    const before = (await nodes()).filter(({ state }) => state === "alive").map(({ id }) => id);
    const began = gate();
    const answer = send(1, key, true, "wait", began.open);
    await began.passed;
    await cluster.end("immediate");
    await until(async () => (await send(0, key, false)).status === 500);
    await Bun.sleep(23_000);
    await cluster.begin();
    await inOrder();
    // By now they have looked for nodes that are gone.
    await Bun.sleep(16_000);
    const after = (await nodes()).filter(({ state }) => state === "alive").map(({ id }) => id);
    expect(after.toSorted()).toEqual(before.toSorted());
    held.open();
    held = gate();
    expect(await answer).toMatchObject({ status: 200, ended: true });
    await judge(key, [await answer]);
    await inOrder();
  }, 600_000);

  test("one that is paused, and closed meanwhile, can neither settle nor admit when it goes on", async () => {
    const { key } = await gateways[1]!.keyWith(0.01);
    const began = gate();
    const answer = send(1, key, true, "wait", began.open);
    await began.passed;
    const before = await nodes();
    // The next checkpoint has said who answers.
    await Bun.sleep(1_300);
    gateways[1]!.signal("SIGSTOP");
    await until(async () => (await nodes()).some(({ state }) => state === "silent"));
    const silent = (await nodes()).find(({ state }) => state === "silent")!;
    expect(before.find(({ id }) => id === silent.id)!.state).toBe("alive");
    const closed = await gateways[0]!.post(`/admin/nodes/${silent.id}/close`, {}, ADMIN);
    expect(closed.json).toEqual({ id: silent.id, state: "left" });
    const late = send(1, key, false);
    held.open();
    gateways[1]!.signal("SIGCONT");
    const seen = await answer;
    expect(seen.status).toBe(200);
    expect(seen.bytes).toBeGreaterThan(0);
    expect(seen.ended).toBe(false);
    expect((await late).status).not.toBe(200);
    expect(await gateways[1]!.ended()).toBe(1);
    const receipt = (await gateways[0]!.get(`/v1/receipts/${seen.receipt}`, key)).json;
    const by = { model: "test/model", host: "h" };
    expect(receipt).toMatchObject({ state: "recovered", cost_usd: 0, ...by });
    gateways[1] = await start(folders[1]!);
    await drain(key);
    await inOrder();
  }, 600_000);

  test("one that drains leaves nothing behind, and comes back as another", async () => {
    const alive = async () => (await nodes()).filter(({ state }) => state === "alive").map(({ id }) => id);
    const before = await alive();
    expect(await gateways[1]!.stop()).toBe(0);
    expect(await alive()).toHaveLength(1);
    gateways[1] = await start(folders[1]!);
    const after = await alive();
    expect(after).toHaveLength(2);
    expect(after.filter((id) => before.includes(id))).toHaveLength(1);
    await inOrder();
  }, 600_000);
});

interface Seen {
  status: number;
  receipt: string | null;
  bytes: number;
  /** As an answer should. */
  ended: boolean;
}

const config = (hostUrl: string, store: string): string => `${oneHost(hostUrl)}
setup: { accountless_keys_per_address_per_hour: 1000 }
store: ${store}
journal: postgres
`;
