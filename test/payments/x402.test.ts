import { afterAll, expect, test } from "bun:test";
import Anthropic from "@anthropic-ai/sdk";
import { Mppx } from "mppx/client";
import { evm } from "mppx/evm/client";
import OpenAI from "openai";
import { json, sse } from "../fakes/behaviours.ts";
import { LocalChain, NETWORK } from "../fakes/chain/chain.ts";
import { startFakeHost } from "../fakes/host.ts";
import { chatText } from "../fakes/transcripts.ts";
import { open } from "../gateway/open.ts";
import { offerOf, order, paidConfig, payer, paying, paymentsOf, save, somewhere } from "./paid-gateway.ts";

const payTo = somewhere();

const chain = await LocalChain.start();
const host = await startFakeHost((request) => {
  const { events, whole } = chatText(["Hello"], { input: 7, output: 3 });
  return request.json().stream === true ? sse(events) : json(whole);
});
const gateway = await open(
  paidConfig({ chain, payTo, host: host.url, settledBy: `gas_key: "${await chain.gasKey()}"` }),
);
afterAll(async () => {
  await gateway.close();
  await host.close();
  chain.stop();
});

test("an agent makes a key, saves both secrets, meets a 402, pays it with the stock client, and works", async () => {
  const mine = await gateway.key(0);
  const before = await gateway.send("GET", "/v1/payments/options", { bearer: mine.key });
  expect(before.json).toEqual({
    methods: [
      { rail: "x402", networks: [NETWORK], assets: ["USDC"], min_usd: 1, max_usd: 500, suggested_usd: 5 },
    ],
    needs: ["secrets_saved"],
  });
  await save(gateway, mine);
  const wallet = await chain.wallet(20);
  const unpaid = await gateway.send("POST", "/v1/credits", { bearer: mine.key, json: { amount_usd: 2 } });
  expect([unpaid.status, unpaid.json.error.code]).toEqual([402, "insufficient_credit"]);
  expect(offerOf(unpaid)).toMatchObject({
    x402Version: 2,
    resource: { url: `${gateway.url}/v1/credits` },
    accepts: [
      { scheme: "exact", network: NETWORK, amount: "2000000", extra: { name: "USDC", version: "2" } },
    ],
  });
  const paid = await order(gateway, mine.key, 2, paying(wallet, 5));
  expect(paid.status).toBe(201);
  expect(await paid.json()).toEqual({
    id: expect.stringMatching(/^pay_/),
    state: "credited",
    amount_usd: 2,
    balance_usd: 2,
  });
  const response = JSON.parse(atob(paid.headers.get("payment-response")!));
  expect(response).toMatchObject({ success: true, network: NETWORK, payer: wallet.address.toLowerCase() });
  expect(await chain.balanceOf(wallet.address)).toBe(18);
  expect((await gateway.chat(mine.key)).status).toBe(200);
  expect(await paymentsOf(gateway, mine.key)).toMatchObject([
    { state: "credited", rail: "x402", amount_usd: 2, credited_usd: 2, transaction: response.transaction },
  ]);
});

for (const stream of [false, true]) {
  test(`a request for an answer pays for itself${stream ? ", streamed" : ""}, once`, async () => {
    const mine = await payer(gateway);
    const wallet = await chain.wallet(20);
    const send = (pay: typeof fetch) =>
      pay(`${gateway.url}/v1/chat/completions`, {
        method: "POST",
        headers: { authorization: `Bearer ${mine.key}`, "content-type": "application/json" },
        body: JSON.stringify({
          model: "test/model",
          max_tokens: 100,
          stream,
          messages: [{ role: "user", content: "Hi" }],
        }),
      });
    const unpaid = await send(fetch);
    expect(unpaid.status).toBe(402);
    // The suggestion, and what the stock client's own limit lets it pay.
    expect(offerOf(unpaid)?.accepts.map(({ amount }) => amount)).toEqual(["5000000", "1000000"]);
    const answers = await Promise.all(Array.from({ length: 10 }, () => send(paying(wallet))));
    expect(answers.map(({ status }) => status)).toEqual(Array(10).fill(200));
    for (const answer of answers) expect(await answer.text()).toContain("Hello");
    expect(answers.filter(({ headers }) => headers.has("payment-response"))).toHaveLength(1);
    expect(await chain.balanceOf(wallet.address)).toBe(19);
    const states = (await paymentsOf(gateway, mine.key)).map(({ state }) => state);
    expect(states.filter((state) => state === "credited")).toHaveLength(1);
    expect((await send(paying(wallet))).status).toBe(200);
    expect(await chain.balanceOf(wallet.address)).toBe(19);
  });
}

test("mppx, OpenAI's and Anthropic's clients pay by a wrapped fetch and notice nothing", async () => {
  const wallet = await chain.wallet(100);
  const mppx = Mppx.create({
    methods: [evm.charge({ account: wallet, networks: [84532] })],
    polyfill: false,
  });
  const texts: string[] = [];
  for (const pay of [paying(wallet), mppx.fetch as typeof fetch]) {
    const messages = [{ role: "user" as const, content: "Hi" }];
    const body = { model: "test/model", max_tokens: 100, messages };
    const first = await payer(gateway);
    const openai = new OpenAI({ apiKey: first.key, baseURL: `${gateway.url}/v1`, fetch: pay, maxRetries: 0 });
    texts.push((await openai.chat.completions.create(body)).choices[0]!.message.content!);
    for await (const { choices } of await openai.chat.completions.create({ ...body, stream: true }))
      texts.push(choices[0]?.delta.content ?? "");
    const second = await payer(gateway);
    const anthropic = new Anthropic({
      authToken: second.key,
      apiKey: null,
      baseURL: gateway.url,
      fetch: pay,
      maxRetries: 0,
    });
    const { content } = await anthropic.messages.create(body);
    texts.push(content.map((block) => (block.type === "text" ? block.text : "")).join(""));
    const third = await payer(gateway);
    const streaming = anthropic.withOptions({ authToken: third.key });
    texts.push(await streaming.messages.stream(body).finalText());
    for (const { key } of [first, second, third])
      expect((await paymentsOf(gateway, key)).map(({ state }) => state)).toEqual(["credited"]);
  }
  expect(texts.join("")).toBe("Hello".repeat(8));
});

test("clients without a wallet read what they read before, and one sentence more", async () => {
  const mine = await payer(gateway);
  const openai = new OpenAI({ apiKey: mine.key, baseURL: `${gateway.url}/v1`, maxRetries: 0 });
  const why = await openai.chat.completions
    .create({ model: "test/model", max_tokens: 100, messages: [{ role: "user", content: "Hi" }] })
    .catch((error: unknown) => error as InstanceType<typeof OpenAI.APIError>);
  expect(why).toMatchObject({ status: 402, code: "insufficient_credit" });
  expect((why as Error).message).toContain("To pay now, sign an offer of the header `payment-required`");
});

test("what is paid on the chain is what the books and the metrics say", async () => {
  const { json } = await gateway.admin("/admin/ledger/audit");
  const paid = await chain.balanceOf(payTo);
  expect([json.ok, Number(json.credits_nano) / 1e9]).toEqual([true, paid]);
  const metrics = (await gateway.admin("/metrics")).text;
  expect(metrics).toContain(`gateway_payments_credited_usd ${paid}`);
});
