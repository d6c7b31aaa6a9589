import { afterAll, afterEach, expect, test } from "bun:test";
import OpenAI from "openai";
import type { PrivateKeyAccount } from "viem/accounts";
import { json } from "../fakes/behaviours.ts";
import { LocalChain } from "../fakes/chain/chain.ts";
import { startFakeHost } from "../fakes/host.ts";
import { chatText } from "../fakes/transcripts.ts";
import { until } from "../fakes/until.ts";
import type { Made, OpenGateway } from "../gateway/open.ts";
import { Folder, GatewayProcess } from "../process/gateway.ts";
import {
  balanceOf,
  openQuick,
  openQuickIn,
  order,
  paidConfig,
  payer,
  paying,
  paymentsOf,
  somewhere,
} from "./paid-gateway.ts";

/** A customer whose answer was lost, or was not what they hoped for, repeats the call with the stock client. */
const chain = await LocalChain.start();
const host = await startFakeHost(() => json(chatText(["Hello"], { input: 7, output: 3 }).whole));
const node = faultyNode();
let gateway: OpenGateway;
let mine: Made;
let wallet: PrivateKeyAccount;
let payTo: `0x${string}`;

afterAll(async () => {
  await host.close();
  await node.stop();
  chain.stop();
});
afterEach(async () => {
  node.isAway = () => false;
  await chain.minesAtOnce(true);
  await gateway.close();
});

async function config(waitMs: number): Promise<string> {
  payTo = somewhere();
  const settledBy = `gas_key: "${await chain.gasKey()}"`;
  const through = { ...chain, rpc: node.rpc } as LocalChain;
  const network = `, wait_ms: ${waitMs}`;
  return paidConfig({ chain: through, payTo, host: host.url, settledBy, network });
}

async function begin(waitMs: number): Promise<void> {
  gateway = await openQuick(await config(waitMs));
  mine = await payer(gateway);
  wallet = await chain.wallet(100);
}

const buy = (usd = 1, headers = {}) => order(gateway, mine.key, usd, paying(wallet), headers);
const paid = async () => [await chain.balanceOf(payTo), await balanceOf(gateway, mine.key)];
const state = async () => (await paymentsOf(gateway, mine.key))[0]?.state;
/** Mines until the last payment is credited. */
const credited = () =>
  until(async () => {
    await chain.mine();
    return (await state()) === "credited";
  });

test("a node that fails once the payment is recorded: the answer is the payment, and a repeated call pays nothing", async () => {
  await begin(300);
  // The transfer is tried once before the payment is recorded.
  let tried = 0;
  node.isAway = (body) => body.includes(TRANSFER) && ++tried > 1;
  const first = await buy();
  const { id, state } = await first.json();
  expect([first.status, state]).toEqual([202, "submitted"]);
  expect(first.headers.get("location")).toBe(`/v1/payments/${id}`);
  node.isAway = () => false;
  await until(async () => (await buy()).status === 201);
  expect(await paid()).toEqual([1, 1]);
});

test("nothing is mined: a call that is repeated until it succeeds is answered with its one payment", async () => {
  await begin(300);
  await chain.minesAtOnce(false);
  const answers = [await buy(), await buy(), await buy()];
  expect(answers.map(({ status }) => status)).toEqual([202, 202, 202]);
  const ids = await Promise.all(answers.map(async (answer) => (await answer.json()).id));
  expect(new Set(ids).size).toBe(1);
  await credited();
  const last = await buy();
  expect([last.status, (await last.json()).id]).toEqual([201, ids[0]]);
  expect(await paid()).toEqual([1, 1]);
  // Its customer knows now: this is another order.
  await chain.minesAtOnce(true);
  expect((await buy()).status).toBe(201);
  expect(await paid()).toEqual([2, 2]);
});

test("a gateway that is killed while a call waits: the call that is repeated after the restart pays nothing", async () => {
  const folder = new Folder(await config(60_000));
  await chain.minesAtOnce(false);
  const killed = await GatewayProcess.start(folder);
  mine = (await killed.post("/v1/keys", {})).json;
  await killed.post("/v1/me/saved", { key: mine.key }, mine.recovery_secret);
  wallet = await chain.wallet(100);
  const lost = order({ url: killed.url } as OpenGateway, mine.key, 1, paying(wallet)).catch(() => "lost");
  const isSent = async () => (await killed.get("/v1/payments", mine.key)).json.data[0]?.transaction != null;
  await until(isSent);
  await killed.kill();
  expect(await lost).toBe("lost");
  gateway = await openQuickIn(folder);
  const repeated = buy();
  const request = send(paying(wallet));
  expect((await request).status).toBe(500);
  await chain.mine();
  expect((await repeated).status).toBe(201);
  expect(await paid()).toEqual([1, 1]);
});

test("a client that left before its answer gets it when it repeats its call, also after the credit", async () => {
  await begin(60_000);
  await chain.minesAtOnce(false);
  const leaving = new AbortController();
  const impatient = ((input: Request, init?: RequestInit) =>
    fetch(input, { ...init, signal: leaving.signal })) as typeof fetch;
  const left = order(gateway, mine.key, 1, paying(wallet, undefined, impatient)).catch(() => "left");
  await until(async () => (await state()) === "submitted");
  leaving.abort();
  expect(await left).toBe("left");
  await credited();
  expect((await buy()).status).toBe(201);
  expect(await paid()).toEqual([1, 1]);
});

test("a payer who has seen that a payment is credited, or orders another amount or by another name, pays again", async () => {
  await begin(300);
  await chain.minesAtOnce(false);
  const { id } = await (await buy()).json();
  await credited();
  expect((await gateway.send("GET", `/v1/payments/${id}`, { bearer: mine.key })).json.state).toBe("credited");
  await chain.minesAtOnce(true);
  await until(async () => (await buy()).status === 201 && (await paid())[0] === 2);
  await chain.minesAtOnce(false);
  const named = (name: string) => buy(1, { "idempotency-key": name });
  const answers = [
    await named("a"),
    await named("a"),
    await named("b"),
    await order(gateway, mine.key, 2, fetch),
  ];
  expect(answers.map(({ status }) => status)).toEqual([202, 202, 202, 402]);
  await credited();
  await until(async () => (await balanceOf(gateway, mine.key)) === 4);
});

const send = (pay: typeof fetch) =>
  pay(`${gateway.url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${mine.key}`, "content-type": "application/json" },
    body: JSON.stringify({
      model: "test/model",
      max_tokens: 100,
      messages: [{ role: "user", content: "Hi" }],
    }),
  });

test("an agent that has not saved its secrets reads what to do first, with the stock client and OpenAI's SDK over it", async () => {
  await begin(300);
  const unsaved = await gateway.key(0);
  const openai = new OpenAI({ apiKey: unsaved.key, baseURL: `${gateway.url}/v1`, fetch: paying(wallet) });
  const messages = [{ role: "user" as const, content: "Hi" }];
  const body = { model: "test/model", max_tokens: 100 };
  const saying = (asking: PromiseLike<unknown>) =>
    Promise.resolve(asking).then(
      () => "answered",
      (error: Error) => error.message,
    );
  const { chat, responses } = openai;
  const answers = await Promise.all([
    saying(chat.completions.create({ ...body, messages })),
    saying(chat.completions.create({ ...body, messages, stream: true })),
    saying(responses.create({ model: "test/model", max_output_tokens: 100, input: "Hi" })),
  ]);
  for (const sentence of answers) expect(sentence).toMatch(/^400 .*POST \/v1\/me\/saved/);
  mine = unsaved;
  const plain = await send(fetch);
  expect([plain.status, (await plain.json()).error.code]).toEqual([400, "invalid_request"]);
  expect(plain.headers.has("payment-required")).toBe(false);
});

/** The selector of `transferWithAuthorization` with a signature of any length. */
const TRANSFER = "cf092995";

/** The chain's node, behind something that does not let every call through. */
function faultyNode() {
  const faulty = { rpc: "", isAway: (_: string): boolean => false, stop: () => server.stop(true) };
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      const body = await request.text();
      if (faulty.isAway(body)) return new Response("bad gateway", { status: 502 });
      return fetch(chain.rpc, { method: "POST", body, headers: { "content-type": "application/json" } });
    },
  });
  faulty.rpc = `http://127.0.0.1:${server.port}`;
  return faulty;
}
