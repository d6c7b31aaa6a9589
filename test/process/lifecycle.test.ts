import { Database } from "bun:sqlite";
import { afterAll, describe, expect, test } from "bun:test";
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { freePort } from "../../bench/processes.ts";
import { checkDisk } from "../../src/cli/machine-checks.ts";
import { cleanEnvironment } from "../environment.ts";
import { json, sse } from "../fakes/behaviours.ts";
import { gate } from "../fakes/gate.ts";
import { startFakeHost } from "../fakes/host.ts";
import { chatText } from "../fakes/transcripts.ts";
import { until } from "../fakes/until.ts";
import { rounds } from "../rounds.ts";
import { crashBills, piecesOf, TEXTS } from "./crash-bills.ts";
import { ADMIN, Folder, GatewayProcess, simpleConfig } from "./gateway.ts";
import { recovery } from "./recovery.ts";
import { storm } from "./storm.ts";

/** The gateway as a process: how it starts, stops, and what it remembers when it is killed. */
const WORDS = Array.from({ length: 200 }, () => " word");
let pause = gate();

const host = await startFakeHost((request) => {
  const { stream } = request.json();
  const { events, whole } = chatText(WORDS, { input: 10 });
  return stream === true
    ? sse(events, { before: (n) => (n === 120 ? pause.passed : undefined) })
    : json(whole);
});
afterAll(() => host.close());

const CHAT = { model: "test/model", max_tokens: 300, messages: [{ role: "user", content: "Hello" }] };
/** So short that the host is asked for it whole, and does not pause in it. */
const SHORT = { ...CHAT, max_tokens: 100 };

async function openStream(
  gateway: Pick<GatewayProcess, "url">,
  key: string,
): Promise<{ readRest(): Promise<string>; receipt: string }> {
  const response = await fetch(`${gateway.url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}` },
    body: JSON.stringify({ ...CHAT, stream: true }),
  });
  const reader = response.body!.getReader();
  let text = "";
  const decoder = new TextDecoder();
  while (text.split(" word").length <= 100)
    text += decoder.decode((await reader.read()).value, { stream: true });
  return {
    receipt: response.headers.get("x-gateway-receipt")!,
    async readRest() {
      for (;;) {
        const { value, done } = await reader.read();
        if (done) return text;
        text += decoder.decode(value, { stream: true });
      }
    },
  };
}

/** The host writes so many tokens, one an event, and then waits. */
const DELIVERED_TOKENS = 600;
const written = await startFakeHost((request) => {
  const kind = request.json().messages[0].content as string;
  const pieces = piecesOf(TEXTS[kind]!).slice(0, DELIVERED_TOKENS);
  const { events } = chatText([...pieces, "never"], { input: 10 });
  return sse(events, { before: (n) => (n === pieces.length + 1 ? new Promise(() => {}) : undefined) });
});
afterAll(() => written.close());

/** What the journal's last checkpoint says that a stream has delivered. */
function deliveredOf(receipt: string, folder: Folder): number {
  const data = folder.env.GATEWAY_DATA!;
  const files = readdirSync(data, { recursive: true, encoding: "utf8" }).filter((name) =>
    name.endsWith(".log"),
  );
  const lines = files.map((name) => readFileSync(join(data, name), "utf8")).join("");
  return Number([...lines.matchAll(new RegExp(`"${receipt}",(\\d+)\\]`, "g"))].at(-1)?.[1] ?? 0);
}

/** The hold covers a expensive host, which does not answer. */
const afterAnExpensiveHost = () =>
  simpleConfig([host.port])
    .replace(
      "hosts:\n",
      'hosts:\n  - { id: costly, base_url: "http://127.0.0.1:1/v1", speaks: [chat.completions] }\n',
    )
    .replace(
      "routes:\n",
      "routes:\n      - { host: costly, model: costly, price: { input: 100, output: 1000 } }\n",
    );

/** Resolves once the output holds these words, or has ended. */
async function untilPrinted(output: ReadableStream<Uint8Array>, words: string): Promise<void> {
  let text = "";
  for await (const bytes of output) {
    text += new TextDecoder().decode(bytes);
    if (text.includes(words)) return;
  }
}

/** Why a gateway does not start in the folder. */
const printedAtStart = (folder: Folder, env?: Record<string, string>): Promise<string> =>
  GatewayProcess.start(folder, env).then(
    () => "started",
    (error: Error) => error.message,
  );

async function withFolder(
  run: (folder: Folder) => Promise<void>,
  config = simpleConfig([host.port]),
): Promise<void> {
  const folder = new Folder(config);
  pause = gate();
  try {
    await run(folder);
  } finally {
    pause.open();
    folder.remove();
  }
}

test("SIGTERM drains: the stream finishes, nothing new is taken, the exit code is 0, and everything is there afterwards", () =>
  withFolder(async (folder) => {
    const gateway = await GatewayProcess.start(folder, {}, ["run", "start"]);
    const { key, id } = await gateway.keyWith(1);
    const stream = await openStream(gateway, key);
    const ended = gateway.stop();
    for (;;) {
      const ready = await fetch(`${gateway.url}/readyz`).then(
        ({ status }) => status,
        () => 503,
      );
      if (ready === 503) break;
    }
    pause.open();
    expect(await stream.readRest()).toEndWith("data: [DONE]\n\n");
    expect(await ended).toBe(0);

    const again = await GatewayProcess.start(folder);
    expect((await again.get(`/v1/receipts/${stream.receipt}`, key)).json).toMatchObject({
      state: "settled",
      key_id: id,
    });
    expect((await again.get("/v1/me", key)).json.balance_usd).toBeCloseTo(1 - (10 + 200 * 10) / 1e6, 9);
    await again.stop();
  }));

test("SIGTERM cuts a stream that takes too long: its client gets an error, and pays what was delivered", () =>
  withFolder(
    async (folder) => {
      const gateway = await GatewayProcess.start(folder);
      const { key } = await gateway.keyWith(1);
      const stream = await openStream(gateway, key);
      const ended = gateway.stop();
      const text = await stream.readRest();
      expect(text).toContain("the gateway was stopped");
      expect(text).toContain('"code":"upstream_error"');
      expect(await ended).toBe(0);

      const again = await GatewayProcess.start(folder);
      expect((await again.get(`/v1/receipts/${stream.receipt}`, key)).json).toMatchObject({
        state: "settled",
        error_code: "upstream_error",
      });
      await again.stop();
    },
    `${simpleConfig([host.port])}\ndrain_ms: 300\n`,
  ));

test("killed while it streams: what was delivered is billed at its host's price, nothing is held, the books are right", () =>
  withFolder(async (folder) => {
    const gateway = await GatewayProcess.start(folder);
    const { key } = await gateway.keyWith(1);
    const stream = await openStream(gateway, key);
    const settled = (await gateway.post("/v1/chat/completions", SHORT, key)).headers.get("x-gateway-receipt");
    await until(() => deliveredOf(stream.receipt, folder) > 50);
    await gateway.kill();

    const again = await GatewayProcess.start(folder);
    const { json: receipt } = await again.get(`/v1/receipts/${stream.receipt}`, key);
    expect(receipt).toMatchObject({ state: "recovered", write_off: false, model: "test/model", host: "h0" });
    expect(receipt.attempts).toMatchObject([
      { host: "costly", outcome: "unreachable" },
      { host: "h0", outcome: "opened", detail: null },
    ]);
    const waited = receipt.attempts[0].ms + receipt.attempts[1].ms;
    expect(receipt.first_token_ms).toBeGreaterThanOrEqual(waited - 1);
    expect(receipt.total_ms).toBeNull();
    const { input, output } = receipt.tokens;
    expect(output).toBeGreaterThan(50);
    expect(output).toBeLessThan(200);
    expect(receipt.price).toMatchObject({ input: 1, output: 10 });
    expect(receipt.cost_usd).toBeCloseTo((input + output * 10) / 1e6, 9);
    expect((await again.get(`/v1/receipts/${settled}`, key)).json.state).toBe("settled");
    expect((await again.get("/v1/me", key)).json.held_usd).toBe(0);
    expect((await again.audit()).json).toMatchObject({ ok: true, drift_nano: "0" });
    await again.stop();
  }, afterAnExpensiveHost()));

test("killed while it streams text of any kind: billed are at least three quarters of what was delivered, and never more", () =>
  withFolder(
    async (folder) => {
      const gateway = await GatewayProcess.start(folder);
      const { key } = await gateway.keyWith(1);
      const opened = await Promise.all(
        Object.keys(TEXTS).map(async (kind) => {
          const { headers, body } = await fetch(`${gateway.url}/v1/chat/completions`, {
            method: "POST",
            headers: { authorization: `Bearer ${key}` },
            body: JSON.stringify({
              ...CHAT,
              max_tokens: 4_000,
              stream: true,
              messages: [{ role: "user", content: kind }],
            }),
          });
          void body!.pipeTo(new WritableStream()).catch(() => {});
          return { kind, receipt: headers.get("x-gateway-receipt")! };
        }),
      );
      for (const { receipt } of opened)
        await until(() => deliveredOf(receipt, folder) >= DELIVERED_TOKENS * 0.75);
      await gateway.kill();

      const again = await GatewayProcess.start(folder);
      for (const { kind, receipt } of opened) {
        const { json } = await again.get(`/v1/receipts/${receipt}`, key);
        const { output } = json.tokens;
        expect([kind, json.state, output >= DELIVERED_TOKENS * 0.75, output <= DELIVERED_TOKENS]).toEqual([
          kind,
          "recovered",
          true,
          true,
        ]);
      }
      await again.stop();
    },
    simpleConfig([written.port]),
  ));

test("a second gateway on the same data folder refuses to start, and says why", () =>
  withFolder(async (folder) => {
    const first = await GatewayProcess.start(folder);
    const second = await GatewayProcess.start(folder).then(
      () => "started",
      (error: Error) => error.message,
    );
    expect(second).toContain("in use by another gateway");
    expect(second).toContain(folder.env.GATEWAY_DATA!);
    expect((await first.get("/healthz")).status).toBe(200);
    await first.stop();
  }));

test("a port that is taken stops the start, and names it and what to set", () =>
  withFolder(async (folder) => {
    const message = await printedAtStart(folder, { PORT: String(host.port) });
    expect(message).toContain(`cannot listen on 127.0.0.1:${host.port} (EADDRINUSE)`);
    expect(message).not.toContain("    at ");
  }));

test("metrics at a port that is taken, or at the gateway's own, stop the start", () =>
  withFolder(async (folder) => {
    const written = readFileSync(join(folder.path, "gateway.yaml"), "utf8");
    const own = freePort();
    for (const [port, why] of [
      [host.port, "EADDRINUSE"],
      [own, "it is the gateway's own port"],
    ] as const) {
      folder.configure(`${written}\nmetrics: 127.0.0.1:${port}\n`);
      const message = await printedAtStart(folder, { PORT: String(own) });
      expect(message).toContain(`cannot listen on 127.0.0.1:${port} (${why}). Set \`metrics\``);
    }
  }));

test.if(process.platform === "linux")(
  "however it is started, Bun keeps what it has compiled, and the operator's own settings of Bun stand",
  () =>
    withFolder(async (folder) => {
      const own = { BUN_JSC_codeBlockAgingLeaseMultiplier: "7" };
      const gateway = await GatewayProcess.start(folder, own, ["src/main.ts"]);
      const settings = readFileSync(`/proc/${gateway.pid}/environ`, "utf8").split("\0");
      expect(settings).toContain("BUN_JSC_optimizedCodeAgingQuietAllocationMB=0");
      expect(settings).toContain("BUN_JSC_numberOfGCMarkers=1");
      expect(settings).toContain("BUN_JSC_codeBlockAgingLeaseMultiplier=7");
      expect(await gateway.stop()).toBe(0);
    }),
);

describe("the configuration", () => {
  test("SIGHUP takes a good file; a bad one is refused whole, and the old one stays", () =>
    withFolder(async (folder) => {
      const gateway = await GatewayProcess.start(folder);
      const { key } = await gateway.keyWith(0);
      const models = async () =>
        (await gateway.get("/v1/models", key)).json.data.map(({ id }: { id: string }) => id);
      folder.configure(simpleConfig([host.port]).replaceAll("test/model", "test/renamed"));
      gateway.signal("SIGHUP");
      await until(async () => (await models())[0] === "test/renamed");

      folder.configure(simpleConfig([host.port]).replace("context_length: 100000", "context_length: many"));
      const refused = await gateway.post("/admin/reload", {}, ADMIN);
      expect(refused.status).toBe(400);
      expect(refused.json.error.message).toContain("models[0].context_length");
      expect(await models()).toEqual(["test/renamed"]);
      await gateway.stop();
    }));

  test("SIGHUP during the start does not end it", () =>
    withFolder(async (folder) => {
      const child = Bun.spawn([process.execPath, "src/main.ts"], {
        cwd: join(import.meta.dir, "../.."),
        env: folder.env,
        stdin: "ignore",
        stdout: "pipe",
        stderr: "pipe",
      });
      await untilPrinted(child.stderr, '"event":"disk"');
      child.kill("SIGHUP");
      await untilPrinted(child.stdout, "listening on ");
      child.kill("SIGTERM");
      expect(await child.exited).toBe(0);
    }));

  test("SIGTERM while free routes are probed drains what the open port has taken", () =>
    withFolder(async (folder) => {
      const first = await GatewayProcess.start(folder);
      const { key } = await first.keyWith(1);
      await first.stop();
      const silent = await startFakeHost(() => () => new Promise(() => {}));
      folder.configure(
        simpleConfig([host.port, silent.port]).replace(
          "{ host: h1, model: bench-model }",
          "{ host: h1, model: bench-model, free: true }",
        ),
      );
      const port = freePort();
      const child = Bun.spawn([process.execPath, "src/main.ts"], {
        cwd: join(import.meta.dir, "../.."),
        env: { ...cleanEnvironment(), ...folder.env, PORT: String(port) },
        stdin: "ignore",
        stdout: "pipe",
        stderr: "ignore",
      });
      const url = `http://127.0.0.1:${port}`;
      await until(() =>
        fetch(`${url}/healthz`).then(
          ({ ok }) => ok,
          () => false,
        ),
      );
      const stream = await openStream({ url }, key);
      child.kill("SIGTERM");
      await until(() =>
        fetch(`${url}/healthz`).then(
          () => false,
          () => true,
        ),
      );
      pause.open();
      expect(await stream.readRest()).toEndWith("data: [DONE]\n\n");
      expect(await child.exited).toBe(0);
      await silent.close();
    }));

  test("a file .env in the working directory is read, and the environment comes first", () =>
    withFolder(async (folder) => {
      writeFileSync(join(folder.path, ".env"), "PORT=first\nHOST=second\n");
      const { PORT: _, ...env } = folder.env;
      const run = (more: Record<string, string>) =>
        Bun.spawnSync([process.execPath, join(import.meta.dir, "../../src/main.ts")], {
          cwd: folder.path,
          env: { ...env, ...more },
        }).stderr.toString();
      expect(run({})).toContain('PORT is "first"');
      expect(run({ PORT: "third" })).toContain('PORT is "third"');
    }));

  const unusable: [string, (path: string) => void, string][] = [
    ["a database of a newer version", madeNewer, "newer gateway"],
    ["a database that is none", (path) => writeFileSync(path, "no database\n".repeat(100)), "damaged"],
  ];
  test.each(unusable)("%s stops the start with a sentence that says what to do", (_name, spoil, expected) =>
    withFolder(async (folder) => {
      const data = folder.env.GATEWAY_DATA!;
      mkdirSync(data, { recursive: true });
      spoil(join(data, "gateway.sqlite"));
      const message = await printedAtStart(folder);
      expect(message).toContain("The gateway did not start");
      expect(message).toContain(expected);
      expect(message).toContain("backup");
      expect(message).not.toContain("    at ");
    }),
  );

  test("an admin token that could be guessed stops the start, and is not shown", () =>
    withFolder(async (folder) => {
      const message = await printedAtStart(folder, { GATEWAY_ADMIN_TOKEN: "hunter2" });
      expect(message).toContain("The gateway did not start");
      expect(message).toContain("GATEWAY_ADMIN_TOKEN must have 16 characters or more, and has 7");
      expect(message).toContain("openssl rand -hex 32");
      expect(message).not.toContain("hunter2");
    }));

  test("a mistake stops the start with file, place, what was found and what was expected", () =>
    withFolder(async (folder) => {
      folder.configure("hosts: 7\nmodels: []\n");
      const message = await printedAtStart(folder);
      expect(message).toContain(folder.env.GATEWAY_CONFIG!);
      expect(message).toContain("hosts: found 7, expected");
    }));

  test("without any, it serves a streamed answer offline", async () => {
    const folder = new Folder("");
    rmSync(folder.env.GATEWAY_CONFIG!);
    const gateway = await GatewayProcess.start(folder, { GATEWAY_CONFIG: "" });
    const { key } = await gateway.keyWith(0);
    const free = { ...CHAT, model: "gateway/auto:free", stream: true };
    const { text, headers } = await gateway.post("/v1/chat/completions", free, key);
    expect(text).toContain("Hello");
    expect(text).toEndWith("data: [DONE]\n\n");
    expect(headers.get("content-type")).toContain("text/event-stream");
    expect(await gateway.stop()).toBe(0);
    folder.remove();
  });
});

function madeNewer(path: string): void {
  const db = new Database(path, { create: true });
  db.run("PRAGMA user_version = 99");
  db.close();
}

/** A disk of its own, so small that it can be filled. */
function mountSmallDisk(path: string): boolean {
  mkdirSync(path, { recursive: true });
  return Bun.spawnSync(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", path]).exitCode === 0;
}

/** Leaves no byte of the disk free. */
function fill(data: string): void {
  for (const size of [4_194_304, 64_000, 4_096, 512]) {
    try {
      writeFileSync(join(data, `filler-${size}`), Buffer.alloc(size));
    } catch {
      // Whatever fitted is what was to be taken.
    }
  }
}

describe("a disk that refuses", () => {
  const onSmallDisk = (run: (folder: Folder, data: string) => Promise<void>) =>
    withFolder(async (folder) => {
      const data = folder.env.GATEWAY_DATA!;
      if (!mountSmallDisk(data)) return console.warn("not tested: this machine does not let us mount a disk");
      try {
        await run(folder, data);
      } finally {
        Bun.spawnSync(["umount", "-l", data]);
      }
    });

  test("because it is full: paid requests get a retryable error, nothing acknowledged is lost, service resumes by itself", () =>
    onSmallDisk(async (folder, data) => {
      const unlimited = "defaults: { accountless: { rpm_limit: 100000, tpm_limit: null } }\n";
      folder.configure(simpleConfig([host.port], unlimited));
      const gateway = await GatewayProcess.start(folder);
      const { key, balance_id } = await gateway.keyWith(1);
      const credit = { balance_id, amount_usd: 1, idempotency_key: "while it is full" };
      const acknowledged: string[] = [];
      const chat = async () => {
        const reply = await gateway.post("/v1/chat/completions", SHORT, key);
        if (reply.status === 200) acknowledged.push(reply.headers.get("x-gateway-receipt")!);
        return reply;
      };
      expect((await chat()).status).toBe(200);
      fill(data);
      // The journal's file is longer than what is written: a few hundred more records have their place
      // already.
      let refused = await chat();
      for (let tries = 0; tries < 2_000 && refused.status === 200; tries++) refused = await chat();
      expect(refused.status).toBe(500);
      expect(refused.json.error).toMatchObject({ code: "internal_error", type: "api_error" });
      expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
      expect((await gateway.get("/readyz")).status).toBe(503);
      // SQLite may have room left in its log: then it is credited, and not once more below.
      const credited = await gateway.post("/admin/credits", credit, ADMIN);
      expect([200, 500]).toContain(credited.status);
      if (credited.status === 500) expect(Number(credited.headers.get("retry-after"))).toBeGreaterThan(0);
      Bun.spawnSync(["sh", "-c", `rm -f ${data}/filler-*`]);
      await until(async () => (await chat()).status === 200);
      for (let time = 0; time < 2; time++) {
        expect((await gateway.post("/admin/credits", credit, ADMIN)).status).toBe(200);
      }
      for (const receipt of acknowledged) {
        expect((await gateway.get(`/v1/receipts/${receipt}`, key)).json.state).toBe("settled");
      }
      expect((await gateway.audit()).json).toMatchObject({
        drift_nano: "0",
        held_nano: "0",
        credits_nano: "2000000000",
      });
      expect(await gateway.stop()).toBe(0);
      const log = await gateway.stderr();
      expect(log).toContain('"event":"disk refuses","error":"ENOSPC');
      expect(log).toContain('"event":"disk accepts again"');
    }));

  test("because it is full: a start is refused, and so it is by doctor, and both say to free space", () =>
    onSmallDisk(async (folder, data) => {
      fill(data);
      const message = await printedAtStart(folder);
      expect(message).toContain("The gateway did not start");
      expect(message).toContain("Free space");
      expect(checkDisk(data)).toMatchObject({ state: "fail", next: expect.stringContaining("Free space") });
    }));

  test("because it has become full since the last start: what is to be done is said, and nothing else", () =>
    onSmallDisk(async (folder, data) => {
      const first = await GatewayProcess.start(folder);
      expect(await first.stop()).toBe(0);
      fill(data);
      const message = await printedAtStart(folder);
      expect(message).toContain(`The gateway did not start: the data folder ${data} cannot be written`);
      expect(message).toContain("Free space");
      expect(message).not.toContain("    at ");
    }));

  test("because it is read-only: the start refuses, and names the folder", () =>
    onSmallDisk(async (folder, data) => {
      Bun.spawnSync(["mount", "-o", "remount,ro", data]);
      const message = await printedAtStart(folder);
      expect(message).toContain("The gateway did not start");
      expect(message).toContain(data);
    }));
});

test("a short storm of kills under streaming load: no acknowledged answer is lost or doubled", async () => {
  const report = await storm(rounds(3, 12), () => {});
  expect(report).toMatchObject({ lost: 0, wrong: 0, driftNano: "0" });
  expect(report.acknowledged).toBeGreaterThan(0);
});

test("kills while texts of all kinds are streamed: nobody is billed for more than was delivered", async () => {
  const kills = rounds(1, 3, 50);
  const report = await crashBills(kills);
  expect(report).toMatchObject({ streams: 5 * kills, unrecovered: 0, tooMuch: 0 });
});

test("a start replays a journal with many receipts and open holds, to the nano-dollar", async () => {
  const report = await recovery(5_000, 500);
  expect(report).toMatchObject({ heldUsd: 0, driftNano: "0", chargedNano: report.expectedNano });
});
