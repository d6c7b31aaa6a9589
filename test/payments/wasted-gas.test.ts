import { afterAll, afterEach, expect, test } from "bun:test";
import { generatePrivateKey, privateKeyToAddress } from "viem/accounts";
import { systemClock } from "../../src/units/clock.ts";
import { json } from "../fakes/behaviours.ts";
import { LocalChain } from "../fakes/chain/chain.ts";
import { startFakeHost } from "../fakes/host.ts";
import { chatText } from "../fakes/transcripts.ts";
import { until } from "../fakes/until.ts";
import { type Made, type OpenGateway, openIn } from "../gateway/open.ts";
import { Folder } from "../process/gateway.ts";
import {
  offerOf,
  openQuickIn,
  order,
  paidConfig,
  payer,
  paying,
  paymentsOf,
  somewhere,
} from "./paid-gateway.ts";

/** Contract wallets that have the gateway's gas account pay for transfers that fail. */
const chain = await LocalChain.start();
const host = await startFakeHost(() => json(chatText(["Hello"], { input: 7, output: 3 }).whole));
let gateway: OpenGateway;
let folder: Folder;
let account: `0x${string}`;
let payTo: `0x${string}`;
afterAll(async () => {
  await host.close();
  chain.stop();
});
afterEach(async () => {
  const { json } = await gateway.admin("/admin/ledger/audit");
  await gateway.close();
  expect(json.ok).toBe(true);
});

async function begin(network = ""): Promise<void> {
  await chain.minesAtOnce(true);
  await emptyTrap();
  const key = await chain.gasKey();
  account = privateKeyToAddress(key);
  payTo = somewhere();
  const settledBy = `gas_key: "${key}"`;
  const settings = `, wait_ms: 300${network}`;
  folder = new Folder(paidConfig({ chain, payTo, host: host.url, settledBy, network: settings }));
  gateway = await openQuickIn(folder);
}

/** `isValidSignature` says yes if the opcodes leave a zero on the stack, and otherwise uses all of its gas. */
function signsWhereZero(opcodes: string): `0x${string}` {
  const offset = (bytesBehind: number) => (opcodes.length / 2 + bytesBehind).toString(16).padStart(2, "0");
  const loop = `5b60${offset(4)}56`;
  return `0x${opcodes}1560${offset(8)}57${loop}5b7f1626ba7e${"00".repeat(28)}60005260206000f3`;
}
const GASPRICE = "3a";
/** The balance of an account that its owner fills when transfers of the wallet are to fail. */
const TRAP = privateKeyToAddress(generatePrivateKey());
const TRAP_BALANCE = `73${TRAP.slice(2)}31`;

async function contractWallet(opcodes = TRAP_BALANCE): Promise<`0x${string}`> {
  const address = privateKeyToAddress(generatePrivateKey());
  await chain.client.setCode({ address, bytecode: signsWhereZero(opcodes) });
  await chain.mint(address, 10);
  return address;
}

/** Orders $1 as a client would whose wallet is the contract. */
async function orderFrom(wallet: `0x${string}`, { key }: Made): Promise<Response> {
  const offered = await order(gateway, key, 1, fetch);
  const [accepted] = offerOf(offered)!.accepts;
  const authorization = {
    ...{ from: wallet, to: payTo, value: accepted!.amount, validAfter: "0" },
    validBefore: String(Math.floor(Date.now() / 1_000) + 300),
    nonce: generatePrivateKey(),
  };
  const payload = { authorization, signature: `0x${"11".repeat(70)}` };
  const header = btoa(JSON.stringify({ x402Version: 2, accepted, payload }));
  return order(gateway, key, 1, fetch, { "payment-signature": header });
}

/** Has the transfers that wait fail: in their block, the trap is filled before they are carried out. */
async function failInBlock(): Promise<void> {
  const price = { maxPriorityFeePerGas: 10n ** 11n, maxFeePerGas: 10n ** 12n };
  await chain.client.sendTransaction({ to: TRAP, value: 1n, gas: 21_000n, ...price });
  await chain.mine();
  await chain.minesAtOnce(true);
}

const emptyTrap = () => chain.client.setBalance({ address: TRAP, value: 0n });

async function wastedGas(): Promise<number> {
  const { text } = await gateway.admin("/metrics");
  return Number(/^gateway_gas_wasted (.*)$/m.exec(text)![1]);
}

test("a contract wallet that signs only where gas costs nothing is refused before anything is sent", async () => {
  await begin();
  const mine = await payer(gateway);
  const answer = await orderFrom(await contractWallet(GASPRICE), mine);
  expect([answer.status, offerOf(answer)?.error]).toEqual([402, expect.stringContaining("would not be")]);
  expect([await paymentsOf(gateway, mine.key), await chain.transactionsOf(account)]).toEqual([[], 0]);
});

test("a contract wallet that signs pays, with one payment under way at a time", async () => {
  await begin();
  const mine = await payer(gateway);
  const wallet = await contractWallet();
  await chain.minesAtOnce(false);
  const first = await orderFrom(wallet, mine);
  expect(first.status).toBe(202);
  const second = await orderFrom(wallet, await payer(gateway));
  expect([second.status, await second.text()]).toEqual([429, expect.stringContaining("a payment under way")]);
  await chain.minesAtOnce(true);
  await chain.mine();
  await until(async () => (await paymentsOf(gateway, mine.key))[0]!.state === "credited");
  expect((await orderFrom(wallet, await payer(gateway))).status).toBe(201);
});

test("a wallet whose transfer failed in a block costs gas once, and is refused for a day by every process", async () => {
  await begin();
  const mine = await payer(gateway);
  const wallet = await contractWallet();
  await chain.minesAtOnce(false);
  expect((await orderFrom(wallet, mine)).status).toBe(202);
  await failInBlock();
  await until(async () => (await paymentsOf(gateway, mine.key))[0]!.reason?.includes("failed") === true);
  expect(await wastedGas()).toBeGreaterThan(100_000);
  // It would sign again.
  await emptyTrap();
  const refused = async () => {
    const answer = await orderFrom(wallet, await payer(gateway));
    expect([answer.status, offerOf(answer)?.error]).toEqual([402, expect.stringContaining("last day")]);
  };
  await refused();
  await gateway.gateway.stop();
  gateway = await openQuickIn(folder);
  await refused();
  expect(await chain.transactionsOf(account)).toBe(1);
});

test("contract wallets waste no more gas than an hour may, and plain accounts go on", async () => {
  await begin(", wasted_gas_per_hour: 600000");
  await chain.minesAtOnce(false);
  const wallets = await Promise.all(Array.from({ length: 6 }, () => contractWallet()));
  const mine = await payer(gateway);
  const answers = await Promise.all(
    wallets.map(async (wallet, index) => orderFrom(wallet, index === 0 ? mine : await payer(gateway))),
  );
  expect(answers.map(({ status }) => status).toSorted()).toEqual([202, 202, 402, 402, 402, 402]);
  await failInBlock();
  await until(async () => (await wastedGas()) > 500_000);
  await emptyTrap();
  const next = await orderFrom(await contractWallet(), await payer(gateway));
  expect([next.status, offerOf(next)?.error]).toEqual([402, expect.stringContaining("wasted_gas_per_hour")]);
  expect(await chain.transactionsOf(account)).toBe(2);
  const plain = await order(gateway, (await payer(gateway)).key, 2, paying(await chain.wallet(10), 5));
  expect(plain.status).toBe(201);
});

test("a failed transfer counts also if its authorization runs out before it would be sent again", async () => {
  await begin();
  await gateway.gateway.stop();
  gateway = await openIn(folder, {}, systemClock, { watchMs: 100, leaseMs: 10_000, resendMs: 600_000 });
  const mine = await payer(gateway);
  await chain.minesAtOnce(false);
  expect((await orderFrom(await contractWallet(), mine)).status).toBe(202);
  await failInBlock();
  await chain.client.increaseTime({ seconds: 400 });
  await chain.mine(4);
  await until(async () => (await paymentsOf(gateway, mine.key))[0]!.state === "failed");
  expect(await wastedGas()).toBeGreaterThan(100_000);
});
