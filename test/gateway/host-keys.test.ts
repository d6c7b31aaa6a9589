import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../src/units/clock.ts";
import { rateLimited, sse, status } from "../fakes/behaviours.ts";
import { gate } from "../fakes/gate.ts";
import { type FakeRequest, type Script, startFakeHost } from "../fakes/host.ts";
import { type CacheUse, cachingHost, PromptCache } from "../fakes/prompt-cache.ts";
import { chatText } from "../fakes/transcripts.ts";
import { until } from "../fakes/until.ts";
import { RawClient } from "../http/raw-client.ts";
import { type OpenGateway, open } from "./open.ts";

const folder = mkdtempSync(join(tmpdir(), "host-keys-"));
const ENV = { KEY_A: "sk-secret-of-key-a", KEY_B: "sk-secret-of-key-b", KEY_C: "sk-secret-of-key-c" };
const closing: { close(): Promise<void> }[] = [];
afterAll(async () => {
  for (const one of closing.reverse()) await one.close();
  rmSync(folder, { recursive: true, force: true });
});

const UNLIMITED = "{ rpm_limit: null, tpm_limit: null, daily_limit_usd: null, monthly_limit_usd: null }";

/** A gateway in front of one host with these keys. */
async function world(keys: string, script: Script, { speaks = "chat.completions", more = "" } = {}) {
  const host = await startFakeHost(script);
  closing.push(host);
  const gateway = await open(
    `
hosts:
  - { id: h, base_url: "${host.url}/v1", speaks: [${speaks}], auto_cache: true, keys: ${keys} }
${more}
models:
  - id: test/model
    context_length: 200000
    max_output_tokens: 4000
    price: { input: 1, output: 5, cache_read: 0.1, cache_write: 1.25 }
    routes: [{ host: h, model: m }${more === "" ? "" : ", { host: other, model: m }"}]
defaults: { accountless: ${UNLIMITED} }
`,
    ENV,
  );
  closing.push(gateway);
  return { host, gateway, mine: (await gateway.key(500)).key };
}

const keyOf = ({ headers }: FakeRequest): string => headers.authorization!.replace("Bearer ", "");

const countBy = (names: readonly string[]): Record<string, number> => {
  const counts: Record<string, number> = {};
  for (const name of names) counts[name] = (counts[name] ?? 0) + 1;
  return counts;
};

/** Each begins a conversation of its own. */
const conversation = (n: number) => ({ messages: [{ role: "user", content: `Question ${n}?` }] });

const hostNow = async (gateway: OpenGateway) => (await gateway.admin("/admin/hosts")).json.data[0];

const answered = (): ReturnType<Script> => sse(chatText(["Fine."]).events);

describe("three keys with limits of their own", () => {
  test("as many requests at once as their sum: each key has its own, and no client sees a 429", async () => {
    const most: Record<string, number> = { [ENV.KEY_A]: 5, [ENV.KEY_B]: 10, [ENV.KEY_C]: 15 };
    const open_: Record<string, number> = {};
    const release = gate();
    const { gateway, mine, host } = await world(
      "[{ env: KEY_A, max_concurrent: 5 }, { env: KEY_B, max_concurrent: 10 }, { env: KEY_C, max_concurrent: 15 }]",
      (request) => {
        const key = keyOf(request);
        open_[key] = (open_[key] ?? 0) + 1;
        if (open_[key] > most[key]!) return rateLimited(60);
        return sse(chatText(["Fine."]).events, { before: (n) => (n === 2 ? release.passed : null) });
      },
    );
    const replies = Array.from({ length: 30 }, () => gateway.chat(mine, { stream: true }));
    await host.arrived(29);
    expect(open_).toEqual(most);
    release.open();
    expect(countBy((await Promise.all(replies)).map((reply) => `${reply.status}`))).toEqual({ 200: 30 });
  });

  test("a minute's requests: all of the sum is used at once, and no host's limit is exceeded", async () => {
    const { gateway, mine, host } = await world(
      "[{ env: KEY_A, rpm: 20 }, { env: KEY_B, rpm: 30 }, { env: KEY_C, rpm: 50 }]",
      answered,
    );
    const replies = await Promise.all(Array.from({ length: 100 }, () => gateway.chat(mine)));
    expect(countBy(replies.map((reply) => `${reply.status}`))).toEqual({ 200: 100 });
    expect(countBy(host.requests.map(keyOf))).toEqual({
      [ENV.KEY_A]: 20,
      [ENV.KEY_B]: 30,
      [ENV.KEY_C]: 50,
    });
  });
});

test("sessions read as much from their prompt caches as with one key: each key's cache is its own", async () => {
  const talk = async (keys: string): Promise<CacheUse[]> => {
    const uses: CacheUse[] = [];
    const caches = new Map<string, Script>();
    const { gateway, mine } = await world(
      keys,
      (request, n) => {
        const key = keyOf(request);
        const script = caches.get(key) ?? cachingHost(new PromptCache(systemClock), uses);
        caches.set(key, script);
        return script(request, n);
      },
      { speaks: "messages" },
    );
    const sessions = Array.from({ length: 12 }, (_, session) => ({
      system: `Session ${session}. ${"Every word of this counts. ".repeat(1_000)}`,
      messages: [] as object[],
    }));
    for (let turn = 0; turn < 6; turn++) {
      for (const { system, messages } of sessions) {
        messages.push({ role: "user", content: `Question ${turn}?` });
        const json = { model: "test/model", system, messages, max_tokens: 50 };
        expect((await gateway.send("POST", "/v1/messages", { bearer: mine, json })).status).toBe(200);
        messages.push({ role: "assistant", content: "Fine." });
      }
    }
    // Which keys twelve sessions fall to is random: one of three may have none.
    expect(caches.size).toBeGreaterThanOrEqual(Math.min(2, keys.split("env").length - 1));
    return uses;
  };
  const readBy = (uses: readonly CacheUse[]) => uses.reduce((sum, { read }) => sum + read, 0);
  const [one, three] = [
    await talk("[{ env: KEY_A }]"),
    await talk("[{ env: KEY_A }, { env: KEY_B }, { env: KEY_C }]"),
  ];
  expect(readBy(three)).toBe(readBy(one));
  expect(readBy(one)).toBeGreaterThan(0);
});

test("a key's file that is replaced under 500 streams breaks none of them, and new requests carry the new key", async () => {
  const path = join(folder, "rotated");
  writeFileSync(path, "sk-first-text\n");
  const release = gate();
  const { gateway, mine, host } = await world(`[{ file: "${path}" }]`, () =>
    sse(chatText(["Fi", "ne."]).events, { before: (n) => (n === 3 ? release.passed : null) }),
  );
  // Bun's fetch opens 256 connections at once.
  const clients = Array.from({ length: 500 }, () => new RawClient(Number(new URL(gateway.url).port)));
  const body = JSON.stringify({
    model: "test/model",
    max_tokens: 100,
    stream: true,
    messages: [{ role: "user", content: "Hello" }],
  });
  const head = `POST /v1/chat/completions HTTP/1.1\r\nhost: g\r\nauthorization: Bearer ${mine}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n`;
  for (const client of clients) void client.write(head + body);
  await host.arrived(499);
  writeFileSync(`${path}.new`, "sk-second-text\n");
  renameSync(`${path}.new`, path);
  await until(() => gateway.logged.some((line) => line.includes("host key replaced")));
  release.open();
  const texts = await Promise.all(clients.map((client) => client.until((text) => text.includes("[DONE]"))));
  expect(texts.filter((text) => text.startsWith("HTTP/1.1 200") && text.includes("ne.")).length).toBe(500);
  for (const client of clients) client.leave();
  expect((await gateway.chat(mine)).status).toBe(200);
  expect(countBy(host.requests.map(keyOf))).toEqual({ "sk-first-text": 500, "sk-second-text": 1 });
  expect(gateway.logged.join("\n")).not.toContain("-text");
}, 60_000);

test("a key's file that is empty or gone leaves the last key in use and is logged once", async () => {
  const path = join(folder, "emptied");
  writeFileSync(path, "sk-kept");
  const { gateway, mine, host } = await world(`[{ file: "${path}" }]`, answered);
  const problems = () => gateway.logged.filter((line) => line.includes("host key file"));
  writeFileSync(path, "");
  await until(() => problems().length === 1);
  rmSync(path);
  await until(() => problems().length === 2);
  expect(problems()[0]).toContain("the file is empty");
  expect(problems()[1]).toContain("the file cannot be read (ENOENT)");
  expect((await gateway.chat(mine)).status).toBe(200);
  expect(host.requests.map(keyOf)).toEqual(["sk-kept"]);
});

describe("a key that the host refuses", () => {
  const refusing =
    (code: number, message = "fake"): Script =>
    (request) =>
      keyOf(request) === ENV.KEY_B ? answered() : status(code, {}, message);

  for (const [code, message] of [
    [401, "Incorrect API key provided: sk-secret-of-key-a"],
    [403, "API key expired"],
  ] as const) {
    test(`with ${code} is retired: no client sees an error, the host stays in use, and the operator is informed`, async () => {
      const { gateway, mine, host } = await world(
        "[{ env: KEY_A }, { env: KEY_B }, { env: KEY_C }]",
        refusing(code, message),
        { more: '  - { id: other, base_url: "http://127.0.0.1:9/v1", speaks: [chat.completions] }' },
      );
      for (let n = 0; n < 30; n++) expect((await gateway.chat(mine, conversation(n))).status).toBe(200);
      const requests = countBy(host.requests.map(keyOf));
      expect(requests).toEqual({ ...requests, [ENV.KEY_B]: 30 });
      expect(requests[ENV.KEY_A] ?? 0).toBeLessThanOrEqual(1);
      expect(requests[ENV.KEY_C] ?? 0).toBeLessThanOrEqual(1);
      const { state, keys } = await hostNow(gateway);
      const retired = keys.filter((key: { state: string }) => key.state === "retired");
      expect(state).toBe("available");
      expect(retired.length).toBe(host.requests.length - 30);
      expect(retired.length).toBeGreaterThan(0);
      expect(retired[0].refused.detail).toStartWith(`status ${code}`);
      expect(gateway.logged.filter((line) => line.includes("host key refused")).length).toBe(retired.length);
      expect(gateway.logged.join("\n")).not.toContain("sk-secret");
      const metrics = (await gateway.admin("/metrics")).text;
      expect(metrics).toContain(`gateway_host_key_state{host="h",key="${retired[0].name}"} 0`);
      expect(metrics).toContain('gateway_host_key_state{host="h",key="KEY_B"} 1');
    });
  }

  test("goes to the next host only when all keys are refused", async () => {
    const other = await startFakeHost(answered);
    closing.push(other);
    const { gateway, mine, host } = await world(
      "[{ env: KEY_A }, { env: KEY_B }, { env: KEY_C }]",
      () => status(401),
      {
        more: `  - { id: other, base_url: "${other.url}/v1", speaks: [chat.completions] }`,
      },
    );
    for (let n = 1; n <= 8; n++) {
      expect((await gateway.chat(mine, conversation(n))).status).toBe(200);
      expect(other.requests.length).toBe(n);
    }
    expect(new Set(host.requests.slice(0, 3).map(keyOf)).size).toBe(3);
    expect((await hostNow(gateway)).state).toBe("resting");
  });
});

test("a key at its host's limit rests alone; the request goes on with another key of the host", async () => {
  const { gateway, mine, host } = await world("[{ env: KEY_A }, { env: KEY_B }]", (request) =>
    keyOf(request) === ENV.KEY_A ? rateLimited(600) : answered(),
  );
  for (let n = 0; n < 20; n++) expect((await gateway.chat(mine, conversation(n))).status).toBe(200);
  expect(countBy(host.requests.map(keyOf))).toEqual({ [ENV.KEY_A]: 1, [ENV.KEY_B]: 20 });
  expect(await hostNow(gateway)).toMatchObject({
    state: "available",
    keys: [
      { name: "KEY_A", state: "resting", refused: null },
      { name: "KEY_B", state: "usable" },
    ],
  });
});

test("when all keys rest, the client gets 429 with the time until the first of them has", async () => {
  const { gateway, mine } = await world("[{ env: KEY_A }, { env: KEY_B }]", (request) =>
    rateLimited(keyOf(request) === ENV.KEY_A ? 300 : 120),
  );
  const first = await gateway.chat(mine);
  expect(first.status).toBeGreaterThanOrEqual(429);
  expect((await hostNow(gateway)).state).toBe("resting");
});
