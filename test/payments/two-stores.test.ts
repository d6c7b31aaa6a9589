import { afterAll, afterEach, expect, test } from "bun:test";
import type { PrivateKeyAccount } from "viem/accounts";
import { localGateway } from "../../src/cli/local-gateway.ts";
import { checkPayments } from "../../src/cli/payment-checks.ts";
import { knownTransactions } from "../../src/cli/shared-address.ts";
import { goodConfig } from "../config/fixture.ts";
import { json } from "../fakes/behaviours.ts";
import { LocalChain, type SignedTransfer } from "../fakes/chain/chain.ts";
import { FakeFacilitator, MOODS } from "../fakes/facilitator.ts";
import { startFakeHost } from "../fakes/host.ts";
import { chatText } from "../fakes/transcripts.ts";
import { until } from "../fakes/until.ts";
import type { Made, OpenGateway } from "../gateway/open.ts";
import { ADMIN } from "../process/gateway.ts";
import {
  balanceOf,
  offerOf,
  openQuick,
  order,
  paidConfig,
  payer,
  paymentsOf,
  signedOffer,
  somewhere,
} from "./paid-gateway.ts";

/** Money that is at the gateway's address, although the gateway did not carry the transfer out. */
const chain = await LocalChain.start();
const host = await startFakeHost(() => json(chatText(["Hello"], { input: 7, output: 3 }).whole));
const facilitator = new FakeFacilitator(chain);
let gateways: { readonly gateway: OpenGateway; readonly mine: Made }[] = [];
let payTo: `0x${string}`;
let wallet: PrivateKeyAccount;

afterAll(async () => {
  await facilitator.stop();
  await host.close();
  chain.stop();
});
afterEach(async () => {
  for (const { gateway } of gateways) {
    expect((await gateway.admin("/admin/ledger/audit")).json.ok).toBe(true);
    await gateway.close();
  }
  gateways = [];
  facilitator.mood = MOODS.honest;
  facilitator.requests = 0;
  facilitator.signers = [chain.sender];
  await chain.minesAtOnce(true);
});

const byFacilitator = async () => `facilitator: "${facilitator.url}"`;
const byGasKey = async () => `gas_key: "${await chain.gasKey()}"`;

/** Gateways with stores of their own that name the same address. */
async function begin(count: number, settledBy = byFacilitator, waitMs = 300): Promise<void> {
  payTo = somewhere();
  wallet = await chain.wallet(100);
  for (let n = 0; n < count; n++) {
    const network = `, wait_ms: ${waitMs}`;
    const config = paidConfig({ chain, payTo, host: host.url, settledBy: await settledBy(), network });
    const gateway = await openQuick(config);
    gateways.push({ gateway, mine: await payer(gateway) });
  }
}

const sign = (usd: number) => signedOffer(gateways[0]!.gateway, gateways[0]!.mine.key, usd, wallet);
const transferIn = (header: string): SignedTransfer => JSON.parse(atob(header)).payload;
const present = (header: string, usd: number, of = gateways[0]!) =>
  order(of.gateway, of.mine.key, usd, fetch, { "payment-signature": header });
const last = async ({ gateway, mine } = gateways[0]!) => (await paymentsOf(gateway, mine.key))[0];
const creditOf = () => Promise.all(gateways.map(({ gateway, mine }) => balanceOf(gateway, mine.key)));

test.each([
  ["gas accounts of their own", byGasKey],
  ["the same facilitator", byFacilitator],
])(
  "one payment that is presented at two stores, by %s, is credited at one and held at the other",
  async (_, by) => {
    await begin(2, by);
    await chain.minesAtOnce(false);
    const header = await sign(5);
    await Promise.all(gateways.map((one) => present(header, 5, one)));
    await chain.mine();
    await until(async () => {
      await chain.mine();
      const states = await Promise.all(gateways.map(async (one) => (await last(one))?.state));
      return states.toSorted().join() === "credited,held";
    });
    expect([(await creditOf()).toSorted(), await chain.balanceOf(payTo)]).toEqual([[0, 5], 5]);
  },
);

test("doctor notices transfers to the address that are no payments of the gateway", async () => {
  await begin(2);
  const [one, other] = gateways as [(typeof gateways)[number], (typeof gateways)[number]];
  await present(await sign(1), 1, one);
  const header = await signedOffer(other.gateway, other.mine.key, 1, wallet);
  const { url, folder } = one.gateway;
  const { payments } = goodConfig(await Bun.file(folder.env.GATEWAY_CONFIG!).text());
  const seen = async () => {
    const findings = await checkPayments(payments, () => knownTransactions(localGateway(url, ADMIN, fetch)));
    return findings.find(({ check }) => check.startsWith("pay_to"));
  };
  expect(await seen()).toMatchObject({ state: "ok", detail: expect.stringContaining("of 1 transfers") });
  await present(header, 1, other);
  expect(await seen()).toMatchObject({ state: "warn", detail: expect.stringContaining("1 are no payments") });
});

test("a transfer that its payer carries out before presenting it is held, and nobody is asked to pay again", async () => {
  await begin(1);
  const [{ gateway, mine }] = gateways as [(typeof gateways)[number]];
  const header = await sign(2);
  await chain.carryOut(transferIn(header));
  const answer = await present(header, 2);
  expect([answer.status, offerOf(answer)]).toEqual([202, null]);
  const { id, state, reason } = await answer.json();
  expect([state, answer.headers.get("location")]).toEqual(["held", `/v1/payments/${id}`]);
  expect(reason).toContain("not by this gateway");
  // Neither by the same header, nor by the call that is repeated without one.
  for (const again of [await present(header, 2), await order(gateway, mine.key, 2, fetch)])
    expect([again.status, (await again.json()).id]).toEqual([202, id]);
  expect([await creditOf(), facilitator.requests]).toEqual([[0], 0]);
  await gateway.admin(`/admin/payments/${id}/resolve`, { as: "credited" });
  expect(await creditOf()).toEqual([2]);
});

test("a request for an answer that presents a transfer which was carried out before names the payment that is held", async () => {
  await begin(1);
  const [{ gateway, mine }] = gateways as [(typeof gateways)[number]];
  const header = await sign(5);
  await chain.carryOut(transferIn(header));
  const answer = await fetch(`${gateway.url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${mine.key}`, "payment-signature": header },
    body: JSON.stringify({
      model: "test/model",
      max_tokens: 100,
      messages: [{ role: "user", content: "Hi" }],
    }),
  });
  expect([answer.status, offerOf(answer)]).toEqual([500, null]);
  const { id, state } = (await last())!;
  expect([state, (await answer.json()).error.message]).toEqual(["held", expect.stringContaining(`${id}`)]);
});

test("a transfer that its payer carries out while the facilitator does nothing is held", async () => {
  await begin(1);
  facilitator.mood = async () => Response.json({ success: false, errorReason: "busy" });
  const header = await sign(2);
  expect((await present(header, 2)).status).toBe(202);
  await chain.carryOut(transferIn(header));
  await until(async () => (await last())?.state === "held");
  expect(await creditOf()).toEqual([0]);
});

test.each([
  ["loses its answer, and names the account that it sends from", "504 after it moved", true, "credited"],
  ["loses its answer, and does not name its accounts", "504 after it moved", false, "held"],
  ["says that it has failed, and names its account", "failure after it moved", true, "held"],
] as const)("a facilitator that %s: %s", async (_, mood, names, state) => {
  await begin(1);
  facilitator.mood = MOODS[mood];
  facilitator.signers = names ? [chain.sender] : null;
  await present(await sign(3), 3);
  await until(async () => (await last())?.state === state);
  expect(await creditOf()).toEqual([state === "credited" ? 3 : 0]);
});
