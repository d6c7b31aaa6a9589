import { Database } from "bun:sqlite";
import { afterAll, expect, test } from "bun:test";
import { closeSync, mkdirSync, openSync, readFileSync, writeFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { gateway as command } from "../../cli/command.ts";
import { json, sse } from "../../fakes/behaviours.ts";
import { gate } from "../../fakes/gate.ts";
import { startFakeHost } from "../../fakes/host.ts";
import { chatText } from "../../fakes/transcripts.ts";
import { until } from "../../fakes/until.ts";
import { ADMIN, Folder, GatewayProcess, simpleConfig } from "../../process/gateway.ts";
import { storm } from "../../process/storm.ts";
import { rounds } from "../../rounds.ts";
import { keeperOf, workersOf } from "./processes.ts";

/** Streams stop after their first word until it is opened. */
const streams = gate();
const host = await startFakeHost((request) => {
  const { stream } = request.json();
  const { events, whole } = chatText(["ok", " then"], { input: 10, output: 1 });
  return stream === true
    ? sse(events, { before: (n) => (n === 2 ? streams.passed : undefined) })
    : json(whole);
});
afterAll(() => host.close());

const UNLIMITED = "defaults: { accountless: { rpm_limit: 100000, tpm_limit: null } }\n";
/** 10 prompt tokens at $1 and one output token at $10 per million. */
const ANSWER_NANO = 20_000;
const CHAT = { model: "test/model", max_tokens: 10, messages: [{ role: "user", content: "Hello" }] };
const configured = (workers: number | string) =>
  simpleConfig([host.port], `workers: ${workers}\n${UNLIMITED}`);

async function withWorkers(run: (gateway: GatewayProcess, folder: Folder) => Promise<void>): Promise<void> {
  const folder = new Folder(configured(2));
  const gateway = await GatewayProcess.start(folder);
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
  ofOthers = 0,
): Promise<void> {
  for (const receipt of receipts)
    expect((await gateway.get(`/v1/receipts/${receipt}`, key)).json).toMatchObject({ state: "settled" });
  const charges_nano = String((receipts.length + ofOthers) * ANSWER_NANO);
  // What the other worker ended last may be on its way.
  await until(async () => (await gateway.audit()).json.charges_nano === charges_nano);
  expect((await gateway.audit()).json).toMatchObject({ ok: true, drift_nano: "0", charges_nano });
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
    await until(async () =>
      (await gateway.get("/metrics", ADMIN)).text.includes("\ngateway_keeper_restarts_total 1\n"),
    );
    await expectBooked(gateway, key, receipts);
    // What the next one changes, all workers notice.
    expect((await gateway.send("DELETE", `/v1/keys/${id}`, undefined, key)).status).toBe(200);
    for (let time = 0; time < 10; time++) expect((await chat(gateway, key)).status).toBe(401);
    expect(await gateway.stop()).toBe(0);
    const logged = (await gateway.stderr()).split("\n").filter((line) => line.includes('"event":"keeper '));
    expect(logged.map((line) => JSON.parse(line))).toMatchObject([
      { event: "keeper ended", by: "SIGKILL" },
      { event: "keeper restarted" },
    ]);
  }));

test("a keeper that is stopped is waited for: what workers have been granted goes on, and no cap is crossed", () =>
  withWorkers(async (gateway) => {
    const { key } = await gateway.keyWith(1);
    const ANSWERS = 20;
    const scarce = await gateway.keyWith((ANSWERS * ANSWER_NANO) / 1e9);
    const receipts = await chats(gateway, key, 10);
    const paid = await chats(gateway, scarce.key, 4);
    const keeper = keeperOf(gateway.pid)!;
    process.kill(keeper, "SIGSTOP");
    try {
      receipts.push(...(await chats(gateway, key, 4)));
      const spent = Promise.all(Array.from({ length: 2 * ANSWERS }, () => chat(gateway, scarce.key)));
      // Until their leases are over: then nothing is admitted, and every refusal says to retry.
      await until(async () => (await gateway.get("/readyz")).status === 503);
      const refused = await chat(gateway, key);
      expect([refused.status, Number(refused.headers.get("retry-after")) > 0]).toEqual([500, true]);
      // Requests that needed a grant were refused as well.
      for (const { status, headers } of await spent) {
        if (status === 200) paid.push(headers.get("x-gateway-receipt")!);
        else expect([status, Number(headers.get("retry-after")) > 0]).toEqual([500, true]);
      }
    } finally {
      process.kill(keeper, "SIGCONT");
    }
    await until(async () => {
      const { status, headers } = await chat(gateway, key);
      if (status === 200) receipts.push(headers.get("x-gateway-receipt")!);
      return status === 200;
    });
    await until(async () => {
      const { status, headers } = await chat(gateway, scarce.key);
      if (status === 200) paid.push(headers.get("x-gateway-receipt")!);
      return status === 402;
    });
    expect(paid.length).toBeLessThanOrEqual(ANSWERS);
    for (const receipt of paid)
      expect((await gateway.get(`/v1/receipts/${receipt}`, scarce.key)).json).toMatchObject({
        state: "settled",
      });
    await expectBooked(gateway, key, receipts, paid.length);
  }));

test("a drain lets streams at both workers end, and the keeper books them before it ends too", async () => {
  const folder = new Folder(configured(2));
  const gateway = await GatewayProcess.start(folder);
  const { key } = await gateway.keyWith(1);
  const stream = { ...CHAT, stream: true };
  const open = await Promise.all(
    Array.from({ length: 8 }, async () => {
      const headers = { authorization: `Bearer ${key}`, connection: "close" };
      const body = JSON.stringify(stream);
      const { body: bytes } = await fetch(`${gateway.url}/v1/chat/completions`, {
        method: "POST",
        headers,
        body,
      });
      const reader = bytes!.getReader();
      let text = new TextDecoder().decode((await reader.read()).value);
      return async () => {
        for (;;) {
          const { value, done } = await reader.read();
          if (done) return text;
          text += new TextDecoder().decode(value);
        }
      };
    }),
  );
  const ended = gateway.stop();
  await until(() =>
    fetch(`${gateway.url}/readyz`).then(
      ({ status }) => status === 503,
      () => true,
    ),
  );
  streams.open();
  for (const rest of open) expect(await rest()).toEndWith("data: [DONE]\n\n");
  expect(await ended).toBe(0);
  expectInDatabase(folder, open.length);
  folder.remove();
});

test("all workers read the file again; a broken one changes nothing, nor keeps a new keeper from its work", () =>
  withWorkers(async (gateway, folder) => {
    const { key } = await gateway.keyWith(1);
    const receipts = await chats(gateway, key, 2);
    const served = (model: string) => gateway.post("/v1/chat/completions", { ...CHAT, model }, key);
    const everywhere = async (model: string, status: number) => {
      const replies = await Promise.all(Array.from({ length: 12 }, () => served(model)));
      for (const { status, headers } of replies)
        if (status === 200) receipts.push(headers.get("x-gateway-receipt")!);
      return replies.every((reply) => reply.status === status);
    };
    folder.configure(configured(2).replaceAll("test/model", "test/renamed"));
    gateway.signal("SIGHUP");
    await until(() => everywhere("test/model", 404));
    expect(await everywhere("test/renamed", 200)).toBe(true);
    folder.configure(configured(2).replace("context_length: 100000", "context_length: many"));
    expect((await gateway.post("/admin/reload", {}, ADMIN)).status).toBe(400);
    gateway.signal("SIGHUP");
    const first = keeperOf(gateway.pid)!;
    process.kill(first, "SIGKILL");
    await until(() => ![undefined, first].includes(keeperOf(gateway.pid)));
    await until(async () => (await gateway.audit()).status === 200);
    expect(await everywhere("test/renamed", 200)).toBe(true);
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
    const next = await GatewayProcess.start(folder);
    await expectBooked(next, key, receipts);
    expect(await next.stop()).toBe(0);
  }));

test("a keeper that is killed while workers drain is replaced, and everything is booked by the end", async () => {
  const folder = new Folder(`${configured(2)}shutdown_delay_ms: 60000\n`);
  const gateway = await GatewayProcess.start(folder);
  const { key } = await gateway.keyWith(1);
  const receipts = await chats(gateway, key, 10);
  gateway.signal("SIGTERM");
  await until(async () => (await gateway.get("/readyz")).status === 503);
  const first = keeperOf(gateway.pid)!;
  process.kill(first, "SIGKILL");
  receipts.push(...(await chats(gateway, key, 5)));
  await until(() => ![undefined, first].includes(keeperOf(gateway.pid)));
  await until(async () => (await gateway.audit()).status === 200);
  // After a second signal, they wait no longer.
  expect(await gateway.stop()).toBe(0);
  expectInDatabase(folder, receipts.length);
  folder.configure(configured(2));
  const next = await GatewayProcess.start(folder);
  await expectBooked(next, key, receipts);
  expect(await next.stop()).toBe(0);
  folder.remove();
});

test("a folder is served by one process or by several, whatever the last life left in which journal", async () => {
  const folder = new Folder(configured(1));
  try {
    let gateway = await GatewayProcess.start(folder);
    const { key } = await gateway.keyWith(1);
    const receipts: string[] = [];
    for (const workers of [3, 1, 2, 1]) {
      receipts.push(...(await chats(gateway, key, 12)));
      await gateway.kill();
      folder.configure(configured(workers));
      gateway = await GatewayProcess.start(folder);
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
    const restored = await GatewayProcess.start(folder, { GATEWAY_DATA: copy });
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
    const gateway = await GatewayProcess.start(folder);
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

test("from a checkout, auto serves with as many workers as there are cores", async () => {
  const folder = new Folder(configured("auto"));
  const gateway = await GatewayProcess.start(folder, {}, ["src/main.ts"]);
  const cores = navigator.hardwareConcurrency;
  expect(workersOf(gateway.pid)).toHaveLength(cores === 1 ? 0 : cores);
  expect(await gateway.stop()).toBe(0);
  folder.remove();
});

test("a short storm of kills of workers and their keeper: no acknowledged answer is lost or doubled", async () => {
  const report = await storm(rounds(4, 12), () => {}, 2);
  expect(report.acknowledged).toBeGreaterThan(0);
  expect(report).toMatchObject({ lost: 0, wrong: 0, driftNano: "0" });
});
