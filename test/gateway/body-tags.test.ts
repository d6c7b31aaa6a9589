import { afterAll, describe, expect, test } from "bun:test";
import { json } from "../fakes/behaviours.ts";
import { closeAll } from "../fakes/close-all.ts";
import { startFakeHost } from "../fakes/host.ts";
import { oneHost } from "../fakes/one-host.ts";
import { chatText } from "../fakes/transcripts.ts";
import { open } from "./open.ts";

const host = await startFakeHost(() => json(chatText(["ok"], { input: 10, output: 1 }).whole));
const gateway = await open(oneHost(host.url));
afterAll(() => closeAll(gateway, host));

const BODIES: Record<string, object> = {
  "/v1/chat/completions": { messages: [{ role: "user", content: "Hello" }] },
  "/v1/responses": { input: "Hello" },
  "/v1/messages": { messages: [{ role: "user", content: "Hello" }], max_tokens: 50 },
};
const [CHAT, RESPONSES, MESSAGES] = Object.keys(BODIES) as [string, string, string];
const METADATA = { tags_from: "metadata" };
const HASHED = /^[0-9a-f]{24}$/;

async function keyWith(policy: object | null, budget?: object) {
  const owner = await gateway.key(1);
  const send = (path: string, json: object) =>
    gateway.send("POST", path, { bearer: owner.recovery_secret, json });
  if (budget) await send("/v1/budgets", { name: "each", cap_usd: 1, window: "day", ...budget });
  const made = await send("/v1/keys", { policy, ...(budget ? { budget: "each" } : {}) });
  expect(made.status).toBe(201);
  return made.json.key as string;
}

const post = (bearer: string, path: string, more: object, headers: Record<string, string> = {}) =>
  gateway.send("POST", path, { bearer, headers, json: { model: "test/model", ...BODIES[path], ...more } });

async function tagsOf(bearer: string, path: string, more: object, headers?: Record<string, string>) {
  const reply = await post(bearer, path, more, headers);
  expect(reply.status).toBe(200);
  return (await gateway.receipt(reply, bearer)).json.tags;
}

describe("metadata as tags", () => {
  const metadata = { customer: "acme", feature: "search" };

  test.each([[CHAT], [RESPONSES]])(
    "%s: its members are the request's tags, where its key says so",
    async (path) => {
      expect(await tagsOf(await keyWith(METADATA), path, { metadata })).toEqual(metadata);
      expect(await tagsOf(await keyWith({ zdr: false }), path, { metadata })).toBeUndefined();
      expect(await tagsOf(await keyWith(null), path, { metadata })).toBeUndefined();
    },
  );

  test("the header goes before them, and a run is none", async () => {
    const key = await keyWith(METADATA);
    const more = { metadata: { ...metadata, "x-gateway-run": "nightly" } };
    expect(await tagsOf(key, CHAT, more, { "x-gateway-tags": "customer=other; team=a" })).toEqual({
      customer: "other",
      feature: "search",
      team: "a",
    });
  });

  test.each([
    ["a name that is none", { Customer: "acme" }, "metadata.Customer"],
    ["a value with a space", { customer: "ac me" }, "metadata.customer"],
    ["an empty value", { customer: "" }, "metadata.customer"],
    ["a value of 65", { customer: "v".repeat(65) }, "metadata.customer"],
    ["nine of them", Object.fromEntries(Array.from({ length: 9 }, (_, at) => [`t${at}`, "x"])), "metadata"],
  ])("%s is refused by name, before it costs anything", async (_what, metadata, param) => {
    const key = await keyWith(METADATA);
    const reached = host.requests.length;
    const { status, json } = await post(key, CHAT, { metadata });
    expect([status, json.error.code, json.error.param]).toEqual([400, "invalid_request", param]);
    expect(host.requests.length).toBe(reached);
  });
});

describe("the end user as a tag", () => {
  const USERS: [string, object][] = [
    [CHAT, { user: "alice@example.com" }],
    [CHAT, { safety_identifier: "alice@example.com", user: "other" }],
    [RESPONSES, { user: "alice@example.com" }],
    [RESPONSES, { safety_identifier: "alice@example.com" }],
    [MESSAGES, { metadata: { user_id: "alice@example.com" } }],
  ];

  test("is the same pseudonym in all languages, and another one of another balance", async () => {
    const [key, other] = [await keyWith({ user_tag: "hashed" }), await keyWith({ user_tag: "hashed" })];
    const found = new Set<string>();
    for (const [path, more] of USERS) found.add((await tagsOf(key, path, more)).user);
    expect(found.size).toBe(1);
    const [user] = found;
    expect(user).toMatch(HASHED);
    const elsewhere = await tagsOf(other, CHAT, { user: "alice@example.com" });
    expect(elsewhere.user).toMatch(HASHED);
    expect(elsewhere.user).not.toBe(user);
  });

  test.each(USERS)("%s %j: as it is named, where the key says so", async (path, more) => {
    expect(await tagsOf(await keyWith({ user_tag: "plain" }), path, more)).toEqual({
      user: "alice@example.com",
    });
  });

  test("comes with metadata, too, and nobody else's receipts have it", async () => {
    const more = { user: "alice", metadata: { customer: "acme" } };
    const tags = await tagsOf(await keyWith(METADATA), CHAT, more);
    expect(tags).toEqual({ customer: "acme", user: expect.stringMatching(HASHED) });
    expect(await tagsOf(await keyWith(null), CHAT, more)).toBeUndefined();
  });

  test("satisfies a budget that caps each user, of which a request without one is refused", async () => {
    const key = await keyWith(null, { per: "tag:user", cap_usd: 0.001 });
    const max_tokens = 100;
    expect((await tagsOf(key, CHAT, { max_tokens, user: "alice" })).user).toMatch(HASHED);
    expect((await post(key, CHAT, { max_tokens, user: "alice" })).json.error.code).toBe("budget_exhausted");
    expect((await post(key, CHAT, { max_tokens, user: "bob" })).status).toBe(200);
    expect((await post(key, CHAT, { max_tokens })).json.error.param).toBe("x-gateway-tags");
    const named = await tagsOf(key, CHAT, { max_tokens, user: "alice" }, { "x-gateway-tags": "user=carol" });
    expect(named).toEqual({ user: "carol" });
  });

  test.each([
    [CHAT, { user: "Alice B." }, "user"],
    [RESPONSES, { safety_identifier: "a;b" }, "safety_identifier"],
    [MESSAGES, { metadata: { user_id: "u".repeat(65) } }, "metadata.user_id"],
  ])("%s %j is refused, where it has to be a value as it is", async (path, more, param) => {
    const { status, json } = await post(await keyWith({ user_tag: "plain" }), path, more);
    expect([status, json.error.param]).toEqual([400, param]);
  });
});

test.each([
  [{ tags_from: "body" }, "policy"],
  [{ user_tag: true }, "policy"],
])("the policy %j is refused", async (policy, param) => {
  const owner = await gateway.key(1);
  const { status, json } = await gateway.send("POST", "/v1/keys", {
    bearer: owner.recovery_secret,
    json: { policy },
  });
  expect([status, json.error.param.startsWith(param)]).toEqual([400, true]);
});
