import { afterAll, expect, test } from "bun:test";
import { closeBeforeHead, json, rateLimited, status } from "../fakes/behaviours.ts";
import { closeAll } from "../fakes/close-all.ts";
import { type Behaviour, startFakeHost } from "../fakes/host.ts";
import { chatText } from "../fakes/transcripts.ts";
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

test("a limit of the free requests at one of a host's keys does not move a paid conversation to another key", async () => {
  const paying = await gateway.key(10);
  const keyOf = async (content: string) => {
    await gateway.chat(paying.key, { messages: [{ role: "user", content }] });
    return host.requests.at(-1)!.headers.authorization!;
  };
  let turn = 0;
  while ((await keyOf(`${turn}`)) !== "Bearer sk-1") turn += 1;
  onTrigger = (wire, seen) =>
    seen.headers.authorization === "Bearer sk-1" ? rateLimited(100)(wire, seen) : json(whole)(wire, seen);
  const free = await gateway.key(0);
  for (let sent = 0; sent < 8; sent++)
    await gateway.chat(free.key, {
      model: "test/model:free",
      messages: [{ role: "user", content: "trigger" }],
    });
  expect(await keyOf(`${turn}`)).toBe("Bearer sk-1");
});

const quota = { error: { message: "You exceeded your current quota.", code: "insufficient_quota" } };

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
    free.map(({ key }) =>
      gateway.chat(key, { model: "test/model:free", messages: [{ role: "user", content: "trigger" }] }),
    ),
  );
  expect(attacks.every((answer) => answer.status >= 400)).toBe(true);
  expect((await gateway.chat(paying.key, { model: "test/model" })).status).toBe(200);
  expect(spare.requests).toHaveLength(0);
});
