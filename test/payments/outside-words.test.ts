import { afterAll, afterEach, expect, test } from "bun:test";
import { json } from "../fakes/behaviours.ts";
import { LocalChain } from "../fakes/chain/chain.ts";
import { FakeFacilitator } from "../fakes/facilitator.ts";
import { startFakeHost } from "../fakes/host.ts";
import { oneHost } from "../fakes/one-host.ts";
import { FakeStripe } from "../fakes/stripe.ts";
import { chatText } from "../fakes/transcripts.ts";
import { until } from "../fakes/until.ts";
import type { OpenGateway } from "../gateway/open.ts";
import { openQuick, order, paidConfig, payer, paymentsOf, signedOffer, somewhere } from "./paid-gateway.ts";

/** What nodes, facilitators and Stripe say on its way to logs, the store and customers. */
const SECRET = "node-key-9f8e7d6c5b4a";
const chain = await LocalChain.start();
const host = await startFakeHost(() => json(chatText(["Hello"], { input: 7, output: 3 }).whole));
const facilitator = new FakeFacilitator(chain);
const node = keyedNode();
let gateway: OpenGateway;

afterEach(async () => {
  node.isAway = false;
  await gateway.close();
});
afterAll(async () => {
  await facilitator.stop();
  await host.close();
  await node.stop();
  chain.stop();
});

const openBy = (settledBy: string) =>
  openQuick(
    paidConfig({
      chain: { ...chain, rpc: node.rpc } as LocalChain,
      payTo: somewhere(),
      host: host.url,
      settledBy,
      network: ", wait_ms: 300",
    }),
  );

test.each([
  ["gas_key", async () => `gas_key: "${await chain.gasKey()}"`],
  ["facilitator", async () => `facilitator: "${facilitator.url}"`],
])(
  "a node whose address is its key is not named in the log while it is away, with %s",
  async (_, settledBy) => {
    gateway = await openBy(await settledBy());
    const mine = await payer(gateway);
    const wallet = await chain.wallet(10);
    const [first, second] = [
      await signedOffer(gateway, mine.key, 1, wallet),
      await signedOffer(gateway, mine.key, 2, wallet),
    ];
    await chain.minesAtOnce(false);
    const present = (header: string, usd: number) =>
      order(gateway, mine.key, usd, fetch, { "payment-signature": header });
    expect((await present(first, 1)).status).toBe(202);
    node.isAway = true;
    expect((await present(second, 2)).status).toBe(500);
    await until(() => gateway.logged.filter((line) => line.includes('"error"')).length > 3);
    await chain.minesAtOnce(true);
    const all = [...gateway.logged, JSON.stringify(await paymentsOf(gateway, mine.key))].join("\n");
    expect(all).not.toContain(SECRET);
    expect(all).toContain("[node]");
  },
);

test("what a facilitator says reaches customer, store and log without the operator's address", async () => {
  facilitator.mood = async () =>
    Response.json({ success: false, errorReason: `no ${SECRET} at ${facilitator.url}/${SECRET}/settle` });
  gateway = await openBy(`facilitator: "${facilitator.url}/${SECRET}"`);
  const mine = await payer(gateway);
  const header = await signedOffer(gateway, mine.key, 1, await chain.wallet(10));
  const answer = await order(gateway, mine.key, 1, fetch, { "payment-signature": header });
  const text = await answer.text();
  const seen = [
    text,
    JSON.stringify(await paymentsOf(gateway, mine.key)),
    (await gateway.admin("/admin/payments")).text,
    ...gateway.logged,
  ].join("\n");
  expect(text).toContain("[hidden]");
  for (const words of [SECRET, facilitator.url, new URL(facilitator.url).host])
    expect(seen).not.toContain(words);
});

test("what Stripe says of its key is not logged", async () => {
  const stripe = new FakeStripe();
  const key = `sk_test_${SECRET}`;
  stripe.refusal = `Invalid API Key provided: ${key} (${btoa(key)})`;
  const paying = `{ secret_key: ${key}, webhook_secret: whsec_1, api_base: "${stripe.url}" }`;
  gateway = await openQuick(`${oneHost(host.url)}\npayments: { stripe: ${paying} }\n`);
  const mine = await payer(gateway);
  const ordered = await gateway.send("POST", "/v1/credits", {
    bearer: mine.recovery_secret,
    json: { amount_usd: 5, rail: "card" },
  });
  expect(ordered.status).toBe(500);
  const all = [...gateway.logged, ordered.text].join("\n");
  expect(all).toContain("Invalid API Key provided: [hidden]");
  for (const words of [key, btoa(key)]) expect(all).not.toContain(words);
  await stripe.close();
});

/** A node that serves every client with the key in its path, as hosted ones do. */
function keyedNode() {
  const keyed = { rpc: "", isAway: false, stop: () => server.stop(true) };
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      if (keyed.isAway) return new Response(`no backend for ${request.url}`, { status: 503 });
      const body = await request.text();
      return fetch(chain.rpc, { method: "POST", body, headers: { "content-type": "application/json" } });
    },
  });
  keyed.rpc = `http://127.0.0.1:${server.port}/rpc/${SECRET}`;
  return keyed;
}
