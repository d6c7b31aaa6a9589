import { expect, test } from "bun:test";
import type { Balance, Key } from "../../src/customers/keys/key.ts";
import type { SignedPayment } from "../../src/payments/rails/x402/authorization.ts";
import { type InlinePayment, InlinePayments, MAX_IN_LINE } from "../../src/payments/rails/x402/inline.ts";
import type { X402Rail } from "../../src/payments/rails/x402/x402.ts";
import type { EpochMs } from "../../src/units/clock.ts";
import { type Refusal, refuse, refused } from "../../src/units/errors/refusal.ts";
import type { BalanceId, KeyId } from "../../src/units/id.ts";
import type { NanoUsd } from "../../src/units/usd.ts";
import { ManualClock } from "../fakes/clock.ts";
import { NETWORK } from "../sim/simulated-chain.ts";

const usd = (amount: number) => (amount * 1e9) as NanoUsd;
const ADDRESS = `0x${"a".repeat(40)}`;
const HEADER = Buffer.from(
  JSON.stringify({
    x402Version: 2,
    accepted: { scheme: "exact", network: NETWORK.network, amount: "1", asset: ADDRESS, payTo: ADDRESS },
    payload: {
      authorization: {
        ...{ from: ADDRESS, to: ADDRESS, value: "1", validAfter: "0", validBefore: "1" },
        nonce: `0x${"1".repeat(64)}`,
      },
      signature: "0x00",
    },
  }),
).toString("base64");

test("so many requests of a balance stand in line to pay, and those of others in lines of their own", async () => {
  const rail = {
    pending: async () => null,
    offered: () => [],
    amountOf: (_: SignedPayment) => usd(5),
    noteUnused: async () => null,
  } as Partial<X402Rail> as X402Rail;
  const lines = new InlinePayments({
    rail,
    amounts: { min: usd(1), suggested: usd(5), max: usd(50), maxPerDay: usd(100) },
    perHour: usd(20),
    againstForging: (_, check) => check(),
    baseUrl: () => "https://gateway.example",
    contact: () => null,
    clock: new ManualClock(),
    onFault() {},
  });
  const enter = (id: BalanceId): Promise<InlinePayment | Refusal> => {
    const balance = { id, accountId: null, secretsSavedAt: 1 as EpochMs } as Balance;
    const payer = { balance, key: { rotationId: "key_1" as KeyId } as Key, blocks: () => [] };
    return lines.begin(HEADER, refuse("insufficient_credit", "Too little."), payer, usd(1));
  };
  const first = await enter("bal_1");
  if (refused(first)) throw new Error(first.message);
  const waiting = Array.from({ length: MAX_IN_LINE - 1 }, () => enter("bal_1"));
  expect(await enter("bal_1")).toMatchObject({ code: "rate_limited", details: { retryAfterS: 5 } });
  expect(refused(await enter("bal_2"))).toBe(false);
  first.end();
  const last = enter("bal_1");
  for (const turn of [...waiting, last]) {
    const slot = await turn;
    if (refused(slot)) throw new Error(slot.message);
    slot.end();
  }
  expect(refused(await enter("bal_1"))).toBe(false);
});
