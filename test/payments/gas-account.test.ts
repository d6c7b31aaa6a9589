import { afterAll, afterEach, expect, spyOn, test } from "bun:test";
import { privateKeyToAddress } from "viem/accounts";
import { GasAccount } from "../../src/payments/rails/x402/gas-account.ts";
import { json } from "../fakes/behaviours.ts";
import { LocalChain } from "../fakes/chain/chain.ts";
import { startFakeHost } from "../fakes/host.ts";
import { chatText } from "../fakes/transcripts.ts";
import { until } from "../fakes/until.ts";
import type { OpenGateway } from "../gateway/open.ts";
import {
  balanceOf,
  openQuick,
  order,
  paidConfig,
  payer,
  paying,
  paymentsOf,
  somewhere,
} from "./paid-gateway.ts";

/** What a gas account has sent, and what becomes of it: nothing that is lost keeps later payments waiting. */
const chain = await LocalChain.start();
const host = await startFakeHost(() => json(chatText(["Hello"], { input: 7, output: 3 }).whole));
let gateway: OpenGateway;
let account: `0x${string}`;
let payTo: `0x${string}`;
afterAll(async () => {
  await host.close();
  chain.stop();
});

async function begin(): Promise<void> {
  await chain.minesAtOnce(true);
  const key = await chain.gasKey();
  account = privateKeyToAddress(key);
  payTo = somewhere();
  const settledBy = `gas_key: "${key}"`;
  gateway = await openQuick(
    paidConfig({ chain, payTo, host: host.url, settledBy, network: ", wait_ms: 300" }),
  );
}

afterEach(async () => {
  const { json } = await gateway.admin("/admin/ledger/audit");
  await gateway.close();
  expect(json.ok).toBe(true);
});

/** Somebody new pays; resolves once that is answered, with a look at their balance. */
async function pay(usd = 2) {
  const mine = await payer(gateway);
  const wallet = await chain.wallet(10);
  const answer = await order(gateway, mine.key, usd, paying(wallet, 5));
  expect([201, 202]).toContain(answer.status);
  return { mine, wallet, isCredited: async () => (await balanceOf(gateway, mine.key)) === usd };
}

async function credited(usd = 2) {
  const paid = await pay(usd);
  await until(paid.isCredited);
}

const waiting = async () => (await chain.waitingOf(account)).map(({ hash }) => hash);

async function metric(name: string): Promise<number> {
  const { text } = await gateway.admin("/metrics");
  return Number(new RegExp(`^${name} (.*)$`, "m").exec(text)![1]);
}

test("a transaction that the node has lost is broadcast again, and those behind it are mined", async () => {
  await begin();
  for (let index = 0; index < 3; index++) await credited();
  await chain.minesAtOnce(false);
  const lost = await pay();
  const more = await pay();
  for (const hash of await waiting()) await chain.client.dropTransaction({ hash });
  await chain.minesAtOnce(true);
  await until(async () => (await lost.isCredited()) && (await more.isCredited()));
  await credited();
  expect(await chain.balanceOf(payTo)).toBe(12);
});

test("a transaction that a reorganisation has undone is broadcast again, and later payments go on", async () => {
  await begin();
  for (let index = 0; index < 3; index++) await credited();
  await chain.mine();
  await credited();
  await chain.reorg(1);
  await credited();
  await until(async () => (await chain.balanceOf(payTo)) === 10);
});

test("a transaction that pays too little for the blocks of today pays more at the same nonce", async () => {
  await begin();
  await credited();
  await chain.minesAtOnce(false);
  const slow = await pay();
  const before = await waiting();
  await chain.client.setNextBlockBaseFeePerGas({ baseFeePerGas: 10n ** 12n });
  await chain.client.setBalance({ address: account, value: 10n ** 21n });
  await until(async () => {
    await chain.client.setNextBlockBaseFeePerGas({ baseFeePerGas: 10n ** 12n });
    await chain.mine();
    return await slow.isCredited();
  });
  const [payment] = await paymentsOf(gateway, slow.mine.key);
  expect(before).not.toContain(payment!.transaction as `0x${string}`);
  expect(await chain.transactionsOf(account)).toBe(2);
});

test("a transfer that gets into a block just before it is sent again takes no second nonce", async () => {
  await begin();
  await chain.minesAtOnce(false);
  const { settle } = GasAccount.prototype;
  const settling = spyOn(GasAccount.prototype, "settle").mockImplementation(async function (
    this: GasAccount,
    ...payment
  ) {
    await chain.mine();
    return settle.apply(this, payment);
  });
  const paid = await pay();
  await until(paid.isCredited);
  expect(settling.mock.calls.length).toBeGreaterThan(1);
  settling.mockRestore();
  await chain.mine();
  expect(await chain.transactionsOf(account)).toBe(1);
});

test("the nonce of a payment whose authorization was used otherwise is filled, and later payments go on", async () => {
  await begin();
  await credited();
  await chain.minesAtOnce(false);
  const spent = await pay();
  for (const hash of await waiting()) await chain.client.dropTransaction({ hash });
  // The payer's money is gone: the transfer would fail.
  await chain.mint(spent.wallet.address, 0);
  await chain.minesAtOnce(true);
  const next = await pay();
  await until(next.isCredited);
  expect([await spent.isCredited(), await chain.balanceOf(payTo)]).toEqual([false, 4]);
});

test("the metrics say how long payments and nonces wait", async () => {
  await begin();
  await credited();
  await chain.minesAtOnce(false);
  const slow = await pay();
  await until(async () => (await metric("gateway_gas_queued_nonces")) === 1);
  await until(async () => (await metric("gateway_payments_oldest_submitted_seconds")) > 0);
  await chain.minesAtOnce(true);
  await chain.mine();
  await until(slow.isCredited);
  await until(async () => (await metric("gateway_gas_queued_nonces")) === 0);
  await until(async () => (await metric("gateway_payments_oldest_submitted_seconds")) === 0);
});
