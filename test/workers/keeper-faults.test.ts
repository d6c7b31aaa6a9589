import { Database } from "bun:sqlite";
import { afterAll, beforeAll, expect, test } from "bun:test";
import { closeSync, mkdirSync, openSync, readFileSync, writeFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { gateway as command } from "../cli/command.ts";
import { json } from "../fakes/behaviours.ts";
import { type FakeHost, startFakeHost } from "../fakes/host.ts";
import { chatText } from "../fakes/transcripts.ts";
import { until } from "../fakes/until.ts";
import { Folder, GatewayProcess, simpleConfig } from "../process/gateway.ts";
import { storm } from "../process/storm.ts";
import { keeperOf, workersOf } from "./processes.ts";

let host: FakeHost;
beforeAll(async () => {
  host = await startFakeHost(() => json(chatText(["ok"], { input: 10, output: 1 }).whole));
});
afterAll(() => host.close());

const UNLIMITED = "defaults: { accountless: { rpm_limit: 100000, tpm_limit: null } }\n";
const CHAT = { model: "test/model", max_tokens: 10, messages: [{ role: "user", content: "Hello" }] };
const configured = (workers: number | string) =>
  simpleConfig([host.port], `workers: ${workers}\n${UNLIMITED}`);
const start = (folder: Folder, env: Record<string, string> = {}) =>
  GatewayProcess.start(folder, env, ["src/main.ts"]);

async function withWorkers(run: (gateway: GatewayProcess, folder: Folder) => Promise<void>): Promise<void> {
  const folder = new Folder(configured(2));
  const gateway = await start(folder);
  try {
    await run(gateway, folder);
  } finally {
    await gateway.kill();
    folder.remove();
  }
}

const chat = (gateway: GatewayProcess, key: string) => gateway.post("/v1/chat/completions", CHAT, key);

/** Their receipts. */
async function chats(gateway: GatewayProcess, key: string, times: number): Promise<string[]> {
  const receipts: string[] = [];
  for (let time = 0; time < times; time++) {
    const { status, headers } = await chat(gateway, key);
    expect(status).toBe(200);
    receipts.push(headers.get("x-gateway-receipt")!);
  }
  return receipts;
}

async function expectBooked(
  gateway: GatewayProcess,
  key: string,
  receipts: readonly string[],
): Promise<void> {
  for (const receipt of receipts)
    expect((await gateway.get(`/v1/receipts/${receipt}`, key)).json).toMatchObject({ state: "settled" });
  const { json: audit } = await gateway.audit();
  expect(audit).toMatchObject({ ok: true, drift_nano: "0", charges_nano: String(receipts.length * 20_000) });
}

/** No journal is needed any more, and nothing is granted. */
function expectInDatabase(folder: Folder, ends: number): void {
  const db = new Database(join(folder.env.GATEWAY_DATA!, "gateway.sqlite"), { readonly: true });
  const counts = "SELECT (SELECT count(*) FROM ends) AS ends, (SELECT count(*) FROM grants) AS grants";
  expect(db.query(`${counts}, (SELECT count(*) FROM nodes WHERE open = 1) AS open`).get()).toEqual({
    ends,
    grants: 0,
    open: 0,
  });
  db.close();
}

test("the keeper that is killed is replaced, and nobody is refused meanwhile", () =>
  withWorkers(async (gateway) => {
    const { key, id } = await gateway.keyWith(1);
    const receipts = await chats(gateway, key, 10);
    const first = keeperOf(gateway.pid)!;
    process.kill(first, "SIGKILL");
    receipts.push(...(await chats(gateway, key, 20)));
    await until(() => ![undefined, first].includes(keeperOf(gateway.pid)));
    await until(async () => (await gateway.get("/v1/me", key)).status === 200);
    await expectBooked(gateway, key, receipts);
    // What the next one changes, all workers notice.
    expect((await gateway.send("DELETE", `/v1/keys/${id}`, undefined, key)).status).toBe(200);
    for (let time = 0; time < 10; time++) expect((await chat(gateway, key)).status).toBe(401);
  }));

test("a keeper that is stopped is waited for, and what workers have been granted goes on", () =>
  withWorkers(async (gateway) => {
    const { key } = await gateway.keyWith(1);
    const receipts = await chats(gateway, key, 10);
    const keeper = keeperOf(gateway.pid)!;
    process.kill(keeper, "SIGSTOP");
    try {
      receipts.push(...(await chats(gateway, key, 4)));
      // Until their leases are over: then nothing is admitted, and everybody is told to come back.
      let refused = await chat(gateway, key);
      await until(async () => {
        if (refused.status === 200) receipts.push(refused.headers.get("x-gateway-receipt")!);
        refused = await chat(gateway, key);
        return refused.status === 500;
      });
      expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
      expect((await gateway.get("/readyz")).status).toBe(503);
    } finally {
      process.kill(keeper, "SIGCONT");
    }
    await until(async () => {
      const { status, headers } = await chat(gateway, key);
      if (status === 200) receipts.push(headers.get("x-gateway-receipt")!);
      return status === 200;
    });
    await expectBooked(gateway, key, receipts);
  }));

test("what was acknowledged is booked although its journal was damaged before the keeper read it", () =>
  withWorkers(async (gateway, folder) => {
    const { key } = await gateway.keyWith(1);
    const receipts = await chats(gateway, key, 10);
    await expectBooked(gateway, key, receipts);
    const keeper = keeperOf(gateway.pid)!;
    process.kill(keeper, "SIGSTOP");
    receipts.push(...(await chats(gateway, key, 10)));
    for (const worker of [1, 2]) {
      const journal = join(folder.env.GATEWAY_DATA!, `worker-${worker}/node/journal-00000001.log`);
      const bytes = readFileSync(journal);
      const file = openSync(journal, "r+");
      for (const receipt of receipts.slice(10)) {
        const at = bytes.lastIndexOf(`{"kind":"terminal","receipt":"${receipt}"`);
        if (at !== -1) writeSync(file, Buffer.of(0), 0, 1, at);
      }
      closeSync(file);
    }
    process.kill(keeper, "SIGCONT");
    await expectBooked(gateway, key, receipts);
  }));

test("a signal to all processes at once ends the keeper last, and everything is booked by then", () =>
  withWorkers(async (gateway, folder) => {
    const { key } = await gateway.keyWith(1);
    const receipts = await chats(gateway, key, 10);
    for (const pid of [keeperOf(gateway.pid)!, gateway.pid, ...workersOf(gateway.pid)])
      process.kill(pid, "SIGTERM");
    expect(await gateway.exited).toBe(0);
    expectInDatabase(folder, receipts.length);
    const next = await start(folder);
    await expectBooked(next, key, receipts);
    expect(await next.stop()).toBe(0);
  }));

test("a keeper that is killed while workers drain is replaced, and everything is booked by the end", async () => {
  const folder = new Folder(`${configured(2)}shutdown_delay_ms: 60000\n`);
  const gateway = await start(folder);
  const { key } = await gateway.keyWith(1);
  const receipts = await chats(gateway, key, 10);
  gateway.signal("SIGTERM");
  await until(async () => (await gateway.get("/readyz")).status === 503);
  const first = keeperOf(gateway.pid)!;
  process.kill(first, "SIGKILL");
  receipts.push(...(await chats(gateway, key, 5)));
  await until(() => ![undefined, first].includes(keeperOf(gateway.pid)));
  await until(async () => (await gateway.audit()).status === 200);
  // Told again, they wait no longer.
  expect(await gateway.stop()).toBe(0);
  expectInDatabase(folder, receipts.length);
  folder.configure(configured(2));
  const next = await start(folder);
  await expectBooked(next, key, receipts);
  expect(await next.stop()).toBe(0);
  folder.remove();
});

test("a folder is served by one process or by several, whatever the last life left in which journal", async () => {
  const folder = new Folder(configured(1));
  try {
    let gateway = await start(folder);
    const { key } = await gateway.keyWith(1);
    const receipts: string[] = [];
    for (const workers of [3, 1, 2, 1]) {
      receipts.push(...(await chats(gateway, key, 12)));
      await gateway.kill();
      folder.configure(configured(workers));
      gateway = await start(folder);
      expect(workersOf(gateway.pid)).toHaveLength(workers === 1 ? 0 : workers);
      await expectBooked(gateway, key, receipts);
    }
    expect(await gateway.stop()).toBe(0);
  } finally {
    folder.remove();
  }
});

test("a backup that is made while workers serve has all that was acknowledged before", () =>
  withWorkers(async (gateway, folder) => {
    const { key } = await gateway.keyWith(1);
    const receipts = await chats(gateway, key, 30);
    const copy = join(folder.path, "copy");
    expect((await command(["backup", copy], { GATEWAY_DATA: folder.env.GATEWAY_DATA! })).code).toBe(0);
    await chats(gateway, key, 5);
    const restored = await start(folder, { GATEWAY_DATA: copy });
    await expectBooked(restored, key, receipts);
    await chats(restored, key, 5);
    expect(await restored.stop()).toBe(0);
  }));

test("a full disk refuses, and service resumes by itself once there is room", async () => {
  const folder = new Folder(configured(2));
  const data = folder.env.GATEWAY_DATA!;
  mkdirSync(data, { recursive: true });
  if (Bun.spawnSync(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", data]).exitCode !== 0)
    return console.warn("not tested: this machine does not let us mount a disk");
  try {
    const gateway = await start(folder);
    const { key } = await gateway.keyWith(1);
    const receipts = await chats(gateway, key, 5);
    for (const size of [8_388_608, 64_000, 4_096, 512]) {
      try {
        writeFileSync(join(data, `filler-${size}`), Buffer.alloc(size));
      } catch {
        // Whatever fitted is what was to be taken.
      }
    }
    const keep = ({ status, headers }: Awaited<ReturnType<typeof chat>>) => {
      if (status === 200) receipts.push(headers.get("x-gateway-receipt")!);
      return status;
    };
    let status = keep(await chat(gateway, key));
    for (let time = 0; time < 4_000 && status === 200; time++) status = keep(await chat(gateway, key));
    expect(status).toBe(500);
    Bun.spawnSync(["sh", "-c", `rm -f ${data}/filler-*`]);
    await until(async () => keep(await chat(gateway, key)) === 200);
    await until(async () => (await gateway.audit()).status === 200);
    await expectBooked(gateway, key, receipts);
    expect(await gateway.stop()).toBe(0);
  } finally {
    Bun.spawnSync(["umount", "-l", data]);
    folder.remove();
  }
});

test("auto serves with as many workers as there are cores", async () => {
  const folder = new Folder(configured("auto"));
  const gateway = await start(folder);
  const cores = navigator.hardwareConcurrency;
  expect(workersOf(gateway.pid)).toHaveLength(cores === 1 ? 0 : cores);
  expect(await gateway.stop()).toBe(0);
  folder.remove();
});

test("a short storm of kills of workers and their keeper: no acknowledged answer is lost or doubled", async () => {
  const report = await storm(5, () => {}, 2);
  expect(report.acknowledged).toBeGreaterThan(0);
  expect(report).toMatchObject({ lost: 0, wrong: 0, driftNano: "0" });
});
