import { afterAll, expect, test } from "bun:test";
import { closeBeforeHead, json, rateLimited, silence, status } from "../fakes/behaviours.ts";
import { closeAll } from "../fakes/close-all.ts";
import { type Behaviour, startFakeHost } from "../fakes/host.ts";
import { chatText } from "../fakes/transcripts.ts";
import { until } from "../fakes/until.ts";
import { open } from "./open.ts";

/**
 * One model at one host, free and paid: senders without credit choose prompts at which the host fails. Paying clients are served
 * there all the same.
 */
let onTrigger: Behaviour = status(500);
const { whole } = chatText(["ok"], { input: 5, output: 1 });
const host = await startFakeHost(
  (request) => (wire, seen) =>
    request.text().includes("trigger") ? onTrigger(wire, seen) : json(whole)(wire, seen),
);
const spare = await startFakeHost(() => json(whole));
const gateway = await open(
  `
hosts:
  - { id: host, base_url: "${host.url}/v1", speaks: [chat.completions], keys: [{ env: FIRST }, { env: SECOND }] }
  - { id: narrow, base_url: "${host.url}/v1", speaks: [chat.completions], max_concurrent: 2 }
  - { id: spare, base_url: "${spare.url}/v1", speaks: [chat.completions] }
models:
  - id: test/model
    context_length: 1000
    max_output_tokens: 100
    price: { input: 1, output: 10 }
    routes:
      - { host: host, model: m, free: true }
      - { host: host, model: m }
      - { host: spare, model: m, price: { input: 2, output: 20 } }
  - id: test/second
    context_length: 1000
    max_output_tokens: 100
    price: { input: 1, output: 10 }
    routes:
      - { host: host, model: second, free: true }
      - { host: host, model: second }
  - id: test/narrow
    context_length: 1000
    max_output_tokens: 100
    price: { input: 1, output: 10 }
    routes:
      - { host: narrow, model: m, free: true }
      - { host: narrow, model: m }
open_tier: { requests_per_day: 50, accountless_requests_per_day: 50, rpm: null }
setup: { accountless_keys_per_address_per_hour: 1000 }
`,
  { FIRST: "sk-1", SECOND: "sk-2" },
);
afterAll(() => closeAll(gateway, host, spare));

test("a free request that fails leaves the route to other free requests", async () => {
  onTrigger = status(500);
  const { key } = await gateway.key(0);
  const send = (content: string) =>
    gateway.chat(key, { model: "test/model:free", messages: [{ role: "user", content }] });
  expect((await send("trigger")).status).toBe(503);
  expect((await send("Hello")).status).toBe(200);
});

const quota = { error: { message: "You exceeded your current quota.", code: "insufficient_quota" } };

test.each<[string, string, Behaviour]>([
  ["a limit", "test/model", rateLimited(100)],
  ["the used up quota", "test/second", json(quota, 429)],
])(
  "%s of the free requests at one of a host's keys does not move a paid conversation to another key",
  async (_, model, limited) => {
    const paying = await gateway.key(10);
    const keyOf = async (content: string) => {
      await gateway.chat(paying.key, { model, messages: [{ role: "user", content }] });
      return host.requests.at(-1)!.headers.authorization!;
    };
    let turn = 0;
    while ((await keyOf(`${turn}`)) !== "Bearer sk-1") turn += 1;
    onTrigger = (wire, seen) =>
      seen.headers.authorization === "Bearer sk-1" ? limited(wire, seen) : json(whole)(wire, seen);
    const free = await gateway.key(0);
    for (let sent = 0; sent < 8; sent++)
      await gateway.chat(free.key, {
        model: `${model}:free`,
        messages: TRIGGER,
      });
    expect(await keyOf(`${turn}`)).toBe("Bearer sk-1");
  },
);

const TRIGGER = [{ role: "user", content: "trigger" }];

test("free requests hold half of a host's slots at most, and wait behind paid ones", async () => {
  const paying = await gateway.key(10);
  const send = (key: string, model: string, content: string, signal?: AbortSignal) =>
    fetch(`${gateway.url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}` },
      body: JSON.stringify({ model, max_tokens: 10, messages: [{ role: "user", content }] }),
      ...(signal && { signal }),
    });
  expect((await send(paying.key, "test/narrow", "Hello")).status).toBe(200);
  onTrigger = silence();
  const leaving = new AbortController();
  const free = await Promise.all(Array.from({ length: 6 }, () => gateway.key(0)));
  const before = host.requests.length;
  for (const { key } of free) void send(key, "test/narrow:free", "trigger", leaving.signal).catch(() => {});
  await until(() => host.requests.length > before);
  expect((await send(paying.key, "test/narrow", "Hello")).status).toBe(200);
  expect(host.requests).toHaveLength(before + 2);
  leaving.abort();
});

test.each<[string, Behaviour]>([
  ["500", status(500)],
  ["404", status(404)],
  ["a connection that breaks", closeBeforeHead()],
  ["429 with a rest", rateLimited(100)],
  ["429 because the free quota is used up", json(quota, 429)],
])("free requests that end in %s leave the paid route alone", async (_name, behaviour) => {
  onTrigger = behaviour;
  const paying = await gateway.key(10);
  const free = await Promise.all(Array.from({ length: 8 }, () => gateway.key(0)));
  const attacks = await Promise.all(
    free.map(({ key }) => gateway.chat(key, { model: "test/model:free", messages: TRIGGER })),
  );
  expect(attacks.every((answer) => answer.status >= 400)).toBe(true);
  expect((await gateway.chat(paying.key, { model: "test/model" })).status).toBe(200);
  expect(spare.requests).toHaveLength(0);
});

test("free requests that the host has no room for do not lower what it gets from paid ones", async () => {
  onTrigger = status(503);
  const free = await Promise.all(Array.from({ length: 20 }, () => gateway.key(0)));
  await Promise.all(
    free.map(({ key }) => gateway.chat(key, { model: "test/model:free", messages: TRIGGER })),
  );
  const { json: hosts } = await gateway.admin("/admin/hosts");
  expect(hosts.data.map((each: { cut_workers: number }) => each.cut_workers)).toEqual([0, 0, 0]);
});

test("the operator sees what failed at the free route, and at the paid one what was served", async () => {
  const { json: hosts } = await gateway.admin("/admin/hosts");
  const [free, paid] = hosts.data[0].routes;
  expect([free.free, paid.free]).toEqual([true, false]);
  expect(free).toMatchObject({ last_failure: { detail: expect.any(String) } });
  expect(free.failed).toBeGreaterThan(0);
  expect(paid).toMatchObject({ verified_free: false, failed: 0, last_failure: null });
  expect(paid.served).toBeGreaterThan(0);
});
