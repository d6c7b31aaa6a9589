import { afterAll, expect, test } from "bun:test";
import { json, sse } from "../fakes/behaviours.ts";
import { closeAll } from "../fakes/close-all.ts";
import { startFakeHost } from "../fakes/host.ts";
import { oneHost } from "../fakes/one-host.ts";
import { chatText } from "../fakes/transcripts.ts";
import { open } from "./open.ts";

let output = 1;
const seen: string[] = [];
const host = await startFakeHost((request) => {
  seen.push(...Object.keys(request.headers));
  const { whole, events } = chatText(["ok"], { input: 10, output });
  return request.json().stream === true ? sse(events) : json(whole);
});
const gateway = await open(oneHost(host.url));
afterAll(() => closeAll(gateway, host));

const post = (bearer: string, tags: string | null, more: object = {}) =>
  gateway.send("POST", "/v1/chat/completions", {
    bearer,
    json: { model: "test/model", max_tokens: 100, messages: [{ role: "user", content: "Hello" }], ...more },
    ...(tags === null ? {} : { headers: { "x-gateway-tags": tags } }),
  });
const groups = async (bearer: string, name: string) => {
  const { groups, other_groups } = (await gateway.send("GET", `/v1/usage?group_by=tag:${name}`, { bearer }))
    .json;
  return {
    other: other_groups,
    of: new Map(groups.map((one: { value: string | null; cost_usd: number }) => [one.value, one])),
  };
};

test.each([
  ["one", "customer=acme", { customer: "acme" }],
  [
    "several",
    "customer=acme; feature=search;team=a.b_c-1",
    { customer: "acme", feature: "search", team: "a.b_c-1" },
  ],
  ["a value with every kind of sign", "q=a=b,c:d/e?f\"g'", { q: "a=b,c:d/e?f\"g'" }],
  ["a name that every object has", "constructor=x", { constructor: "x" }],
  ["the longest name and value", `${"n".repeat(32)}=${"v".repeat(64)}`, { ["n".repeat(32)]: "v".repeat(64) }],
])("%s: the receipt has the tags, streamed or not, and the host sees none", async (_, header, tags) => {
  const { key } = await gateway.key(1);
  for (const stream of [false, true]) {
    const reply = await post(key, header, { stream });
    expect(reply.status).toBe(200);
    expect((await gateway.receipt(reply, key)).json.tags).toEqual(tags);
  }
  expect(seen.filter((name) => name.includes("tags"))).toEqual([]);
});

test.each([
  ["nothing", ""],
  ["a name alone", "customer"],
  ["no value", "customer="],
  ["no name", "=acme"],
  ["a capital in a name", "Customer=acme"],
  ["a name that begins with a digit", "1=a"],
  ["a name of 33", `${"n".repeat(33)}=a`],
  ["a value of 65", `n=${"v".repeat(65)}`],
  ["a space in a value", "customer=ac me"],
  ["a value outside of ASCII", "customer=\u00e4"],
  ["a name twice", "customer=a; customer=b"],
  ["an end without a tag", "customer=a;"],
  ["nine tags", Array.from({ length: 9 }, (_, at) => `t${at}=x`).join(";")],
])("%s is refused, naming the header, before it costs anything", async (_, header) => {
  const { key } = await gateway.key(1);
  const reached = host.requests.length;
  const { status, json: refusal } = await post(key, header);
  expect([status, refusal.error.code, refusal.error.param]).toEqual([
    400,
    "invalid_request",
    "x-gateway-tags",
  ]);
  expect(host.requests.length).toBe(reached);
  expect((await gateway.send("GET", "/v1/me", { bearer: key })).json.available_usd).toBe(1);
});

test("usage by tag is the sum of the receipts with that value, to the nano-dollar, and the whole in all", async () => {
  const { key, recovery_secret } = await gateway.key(1);
  const expected = new Map<string | null, number>();
  for (let at = 0; at < 60; at++) {
    output = 1 + ((at * 7) % 100);
    const value = at % 4 === 3 ? null : `c${at % 4}`;
    const reply = await post(
      key,
      value === null ? (at % 8 === 3 ? null : "other=1") : `customer=${value}; n=${at}`,
    );
    const { cost_usd } = (await gateway.receipt(reply, key)).json;
    expected.set(value, (expected.get(value) ?? 0) + Math.round(cost_usd * 1e9));
  }
  for (const bearer of [key, recovery_secret]) {
    const { of, other } = await groups(bearer, "customer");
    expect(other).toBe(null);
    expect(of.size).toBe(4);
    for (const [value, nano] of expected)
      expect(of.get(value)).toMatchObject({ requests: 15, cost_usd: nano / 1e9 });
  }
  expect((await groups(key, "n")).of.size).toBe(46);
  expect((await groups(key, "nowhere")).of.get(null)).toMatchObject({ requests: 60 });
  expect((await gateway.send("GET", "/v1/usage", { bearer: key })).json.groups).toBe(undefined);
  for (const bad of ["customer", "tag:", "tag:A", "model"])
    expect((await gateway.send("GET", `/v1/usage?group_by=${bad}`, { bearer: key })).json.error.param).toBe(
      "group_by",
    );
});
