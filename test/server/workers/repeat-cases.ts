import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { join } from "node:path";
import { inOrder } from "../../../src/server/workers/repeat-owners.ts";
import { until } from "../../fakes/until.ts";
import { COST, MIDDLE, type Owner, RepeatWorld, read, testRepeats } from "../../gateway/repeat-world.ts";
import { ADMIN, Folder, GatewayProcess } from "../../process/gateway.ts";
import { workersOf } from "./processes.ts";

/** A key is answered by one of three workers, whichever of them a request reaches, whatever store they share. */
export function testRepeatsOfWorkers(database: () => Promise<string>): void {
  const world = new RepeatWorld();
  let gateway: GatewayProcess;
  let folder: Folder;

  beforeAll(async () => {
    const store = await database();
    await world.start(async (config) => {
      folder = new Folder(`${config}store: ${store}\nworkers: 3\n`);
      gateway = await GatewayProcess.start(folder);
      return {
        url: gateway.url,
        get: (path, bearer) => gateway.get(path, bearer),
        owner: (usd) => gateway.keyWith(usd),
      };
    });
  }, 60_000);
  afterAll(async () => {
    world.open();
    await gateway.kill();
    folder.remove();
    await world.host.close();
  });
  beforeEach(() => world.reset());

  testRepeats(world);

  const CHAT = { path: "/v1/chat/completions", stream: true };
  const manyAt = (owner: Owner, name: string) =>
    Promise.all(Array.from({ length: 20 }, () => world.post(owner, name, CHAT)));

  test("another body is refused, whichever worker it reaches, and so is no key", async () => {
    const owner = await gateway.keyWith(1);
    expect((await read(await world.post(owner, "k", CHAT))).status).toBe(200);
    const others = Array.from({ length: 20 }, async (_, n) => {
      const reply = await world.post(owner, n % 2 === 0 ? "k" : " ", { ...CHAT, more: { n: 1, top_p: 0.5 } });
      return [reply.status, ((await reply.json()) as { error: { param: string } }).error.param];
    });
    for (const other of await Promise.all(others)) expect(other).toEqual([400, "Idempotency-Key"]);
    expect(world.arrivals).toBe(1);
  });

  test("OpenAI's package, whose connections break, repeats by itself over other workers and pays once", async () => {
    const owner = await gateway.keyWith(1);
    const { text, tries } = await world.sendLosing(3, owner);
    expect(text).toContain("word59");
    expect([tries, world.arrivals]).toEqual([4, 1]);
    await until(async () => (await world.receiptsOf(owner)).length > 0);
    expect(await world.receiptsOf(owner)).toHaveLength(1);
  }, 60_000);

  test("the request log and the metrics have a request once, where it was answered", async () => {
    const before = await requestsCounted();
    const owner = await gateway.keyWith(1);
    for (const reply of await manyAt(owner, "k")) await reply.text();
    expect((await requestsCounted()) - before).toBe(1);
  });

  /** The kernel refuses where the process that made the file has ended. */
  async function isReached(worker: number): Promise<boolean> {
    const unix = join(folder.env.GATEWAY_DATA!, `worker-${worker}.sock`);
    (await Bun.connect({ unix, socket: { data() {} } })).end();
    return true;
  }

  async function requestsCounted(): Promise<number> {
    const lines = (await gateway.get("/metrics", ADMIN)).text.split("\n");
    return lines
      .filter((line) => line.startsWith("gateway_requests_total{"))
      .reduce((sum, line) => sum + Number(line.split(" ").at(-1)), 0);
  }

  test("when the worker that answers is killed, its clients get an error, nothing stays held, and the next request is a new one", async () => {
    const owner = await gateway.keyWith(1);
    const middle = world.close(MIDDLE);
    const clients = await manyAt(owner, "k");
    const [first] = inOrder(`${owner.id} k`, 3);
    const before = workersOf(gateway.pid);
    process.kill(before[first! - 1]!, "SIGKILL");
    const ends = await Promise.all(clients.map((client) => client.text().catch(() => "broken")));
    for (const end of ends) expect(end).toMatch(/^broken$|"internal_error"/);
    expect(ends.some((end) => end.includes("Send the request again"))).toBe(true);
    middle.open();
    await until(
      () => workersOf(gateway.pid).length === 3 && !workersOf(gateway.pid).includes(before[first! - 1]!),
    );
    // Until then, the next one answers in its place.
    await until(() => isReached(first!));
    await until(async () => (await world.receiptsOf(owner)).length === 1);
    const again = await Promise.all((await manyAt(owner, "k")).map(read));
    expect(new Set(again.map(({ status, text }) => `${status} ${text}`)).size).toBe(1);
    expect(again[0]!.text).toContain("word59");
    expect(world.arrivals).toBe(2);
    await until(async () => (await world.receiptsOf(owner)).length === 2);
    const costs = (await world.receiptsOf(owner)).map(({ cost_usd }: { cost_usd: number }) => cost_usd);
    expect(costs[0]).toBe(COST);
    expect(costs[1]).toBeLessThan(COST);
    await until(
      async () => (await world.spentBy(owner)).spent === Math.round((costs[0] + costs[1]) * 1e9) / 1e9,
    );
    expect((await world.spentBy(owner)).held).toBe(0);
    expect((await gateway.audit()).json).toMatchObject({ ok: true, drift_nano: "0" });
  }, 120_000);

  test("what others answered while a worker was away stays answered when it is back", async () => {
    const owner = await gateway.keyWith(1);
    const names = Array.from({ length: 6 }, (_, n) => `away${n}`);
    const away = inOrder(`${owner.id} ${names[0]!}`, 3)[0]!;
    const before = workersOf(gateway.pid)[away - 1]!;
    process.kill(before, "SIGKILL");
    const answerOf = async (name: string) => (await read(await world.post(owner, name, CHAT))).text;
    // A connection may break before the answer or within it; of those that are kept, more than one.
    const persistently = async (name: string, tries = 10): Promise<string> =>
      answerOf(name).catch((error) => {
        if (tries === 1) throw error;
        return persistently(name, tries - 1);
      });
    const answers = await Promise.all(names.map((name) => persistently(name)));
    await until(() => workersOf(gateway.pid).length === 3 && !workersOf(gateway.pid).includes(before));
    await until(() => isReached(away));
    const arrivals = world.arrivals;
    for (const [n, name] of names.entries()) expect(await answerOf(name)).toBe(answers[n]!);
    expect(world.arrivals).toBe(arrivals);
  }, 120_000);

  test("a drain lets all of them have their answer to its end, wherever it is written", async () => {
    const owner = await gateway.keyWith(1);
    const middle = world.close(MIDDLE);
    const clients = await manyAt(owner, "k");
    gateway.signal("SIGTERM");
    const texts = Promise.all(clients.map((client) => client.text()));
    await until(async () => (await gateway.get("/healthz").catch(() => null)) === null);
    middle.open();
    expect(new Set(await texts).size).toBe(1);
    expect((await texts)[0]).toContain("[DONE]");
    expect(await gateway.exited).toBe(0);
  }, 60_000);
}
