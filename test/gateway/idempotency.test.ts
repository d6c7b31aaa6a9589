import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { until } from "../fakes/until.ts";
import { type OpenGateway, open } from "./open.ts";
import { FAILURE, RepeatWorld, read, testRepeats } from "./repeat-world.ts";

/** Requests that are sent again with their `Idempotency-Key`, over real sockets. */
const world = new RepeatWorld();
let gateway: OpenGateway;

beforeAll(async () => {
  await world.start(async (config) => {
    gateway = await open(config);
    return {
      url: gateway.url,
      get: (path, bearer) => gateway.send("GET", path, bearer === undefined ? {} : { bearer }),
      owner: (usd) => gateway.key(usd),
    };
  });
});
afterAll(async () => {
  world.open();
  await gateway.close();
  await world.host.close();
});
beforeEach(() => world.reset());

testRepeats(world);

describe("a key", () => {
  const CHAT = { path: "/v1/chat/completions", stream: false };

  test("with another body is refused, whatever has become of the first", async () => {
    const owner = await gateway.key(1);
    const held = world.close(0);
    const first = world.post(owner, "k", CHAT);
    await until(() => world.arrivals > 0);
    for (const more of [{ max_tokens: 99 }, { stream: true }]) {
      const refusal = await (await world.post(owner, "k", { ...CHAT, more })).json();
      expect(refusal).toMatchObject({ error: { code: "invalid_request", param: "Idempotency-Key" } });
    }
    held.open();
    expect((await first).status).toBe(200);
    expect((await world.post(owner, "k", { ...CHAT, more: { n: 1 } })).status).toBe(400);
    expect((await world.post(owner, "k", { ...CHAT, path: "/v1/messages" })).status).toBe(400);
    expect(world.arrivals).toBe(1);
  });

  test("is its API key's, and that of its rotations: other keys of the balance have their own", async () => {
    const one = await gateway.key(1);
    const by = { bearer: one.recovery_secret };
    const sibling = (await gateway.send("POST", "/v1/keys", { ...by, json: {} })).json;
    const rotated = (await gateway.send("POST", `/v1/keys/${one.id}/rotate`, { bearer: one.key })).json;
    const replies = [
      await world.post(one, "k", CHAT),
      await world.post(await gateway.key(1), "k", CHAT),
      await world.post(sibling, "k", CHAT),
      await world.post(rotated, "k", CHAT),
    ];
    const replayed = replies.map(({ headers }) => headers.get("idempotent-replayed"));
    expect(replayed).toEqual([null, null, null, "true"]);
    expect(world.arrivals).toBe(3);
  });

  test("of a sibling gives a key nothing that may not call the model, and bars nobody else's", async () => {
    const one = await gateway.key(1);
    const by = { bearer: one.recovery_secret };
    const narrow = (await gateway.send("POST", "/v1/keys", { ...by, json: {} })).json;
    expect((await world.post(narrow, "job-1", { ...CHAT, more: { max_tokens: 9 } })).status).toBe(200);
    expect((await world.post(one, "job-1", CHAT)).status).toBe(200);
    expect((await world.post(one, "job-2", CHAT)).status).toBe(200);
    const only = { allowed_models: ["other/model"] };
    await gateway.send("PATCH", `/v1/keys/${narrow.id}`, { ...by, json: only });
    expect((await world.post(narrow, "job-2", CHAT)).status).toBe(400);
    expect(world.arrivals).toBe(3);
  });

  test("in quotes is the key without them", async () => {
    const owner = await gateway.key(1);
    const replayed = async (name: string) =>
      (await world.post(owner, name, CHAT)).headers.get("idempotent-replayed");
    expect([await replayed('"a-b"'), await replayed("a-b")]).toEqual([null, "true"]);
    expect([await replayed('a"b'), await replayed('"a\\"b"')]).toEqual([null, "true"]);
    expect(world.arrivals).toBe(2);
  });

  test("is of no use to a caller who may not send any more", async () => {
    const owner = await gateway.key(1);
    await world.post(owner, "k", CHAT);
    await gateway.send("DELETE", `/v1/keys/${owner.id}`, { bearer: owner.recovery_secret });
    expect((await world.post(owner, "k", CHAT)).status).toBe(401);
  });

  test.each(["", " ", '""', '" "', "x".repeat(256), "schl\u00fcssel"])(
    "`%s` is refused where it is none",
    async (name) => {
      const owner = await gateway.key(1);
      const reply = await gateway.send("POST", CHAT.path, {
        bearer: owner.key,
        headers: { "idempotency-key": name },
        json: { model: "test/model", messages: [{ role: "user", content: "Hello" }] },
      });
      expect([reply.status, reply.json.error?.param]).toEqual([400, "Idempotency-Key"]);
    },
  );
});

describe("what is not an answer", () => {
  const CHAT = { path: "/v1/chat/completions", stream: false };

  test("reaches those that wait for it, and the next request is a new one", async () => {
    const owner = await gateway.key(1);
    world.failures = [400];
    const held = world.close(FAILURE);
    const first = world.post(owner, "k", CHAT);
    await until(() => world.arrivals > 0);
    const second = world.post(owner, "k", CHAT);
    await gateway.send("GET", "/healthz");
    held.open();
    const failed = await Promise.all([first, second]);
    expect(failed.map(({ status }) => status)).toEqual([400, 400]);
    expect(new Set(failed.map(({ headers }) => headers.get("x-gateway-receipt"))).size).toBe(1);
    expect(world.arrivals).toBe(1);
    expect((await world.post(owner, "k", CHAT)).status).toBe(200);
  });

  test("is forgotten where credit was short", async () => {
    const owner = await gateway.key(0);
    expect((await world.post(owner, "k", CHAT)).status).toBe(402);
    await gateway.credit(owner.balance_id, 1);
    expect((await world.post(owner, "k", CHAT)).status).toBe(200);
  });

  test("is forgotten where a stream broke off and was not charged; one that was charged is not sent again", async () => {
    const owner = await gateway.key(1);
    world.breaks = { after: 20 };
    const written = await read(await world.post(owner, "short", { ...CHAT, stream: true }));
    expect(written.text).toContain("upstream_error");
    world.breaks = { after: 56 };
    const charged = await read(await world.post(owner, "long", { ...CHAT, stream: true }));
    expect(charged.text).toContain("upstream_error");
    world.breaks = null;
    expect((await read(await world.post(owner, "short", { ...CHAT, stream: true }))).text).toContain(
      "[DONE]",
    );
    expect((await read(await world.post(owner, "long", { ...CHAT, stream: true }))).text).toBe(charged.text);
    expect(world.arrivals).toBe(3);
  });
});

test("OpenAI's package, whose connection breaks once the answer is there, repeats by itself and pays once", async () => {
  const owner = await gateway.key(1);
  const { text, tries } = await world.sendLosing(1, owner);
  expect(text).toContain("word59");
  expect([tries, world.arrivals]).toEqual([2, 1]);
  expect(await world.receiptsOf(owner)).toHaveLength(1);
});
