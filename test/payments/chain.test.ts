import { afterAll, expect, test } from "bun:test";
import { openChain } from "../../src/payments/rails/x402/chain.ts";
import type { NanoUsd } from "../../src/units/usd.ts";
import { LocalChain, NETWORK, signTransfer, USDC } from "../fakes/chain/chain.ts";
import { somewhere } from "./paid-gateway.ts";

const local = await LocalChain.start();
const chain = await openChain({
  ...{ network: NETWORK, asset: USDC, payTo: somewhere(), rpc: local.rpc, settledBy: { facilitator: "" } },
  ...{ confirmations: 1, finalizedAbove: 0 as NanoUsd, wastedGasPerHour: 0, waitMs: 0 },
});
afterAll(() => local.stop());

async function signed(usd: number) {
  const wallet = await local.wallet(usd);
  return signTransfer(wallet, {
    ...{ from: wallet.address, to: somewhere(), value: "1000000", validAfter: "0" },
    validBefore: String(Math.floor(Date.now() / 1_000) + 600),
    nonce: `0x${crypto.randomUUID().replaceAll("-", "").repeat(2)}`,
  });
}

test("an authorization was unused by the blocks before its transfer, and by no later one", async () => {
  const transfer = await signed(1);
  const { latest } = await chain.head();
  expect(await chain.unusedAt(transfer.authorization, latest)).toBe(true);
  await local.carryOut(transfer);
  await local.mine();
  const unused = [latest, latest + 1, latest + 2].map((block) =>
    chain.unusedAt(transfer.authorization, block),
  );
  expect(await Promise.all(unused)).toEqual([true, false, false]);
});

test("a node that does not have the block yet does not say that nobody had used it", async () => {
  const { authorization } = await signed(1);
  const { latest } = await chain.head();
  await expect(chain.unusedAt(authorization, latest + 100)).rejects.toThrow();
});

test("a transaction waits, or is in a block, whether its transfer succeeded or failed", async () => {
  const transfer = await signed(1);
  await local.minesAtOnce(false);
  const [first, again] = [await local.carryOut(transfer), await local.carryOut(transfer)];
  expect(await chain.fate(first)).toBe("waiting");
  await local.mine();
  await local.minesAtOnce(true);
  expect([await chain.fate(first), await chain.fate(again)]).toEqual(["mined", "mined"]);
  expect(await chain.fate(`0x${"1".repeat(64)}`)).toBe("unknown");
});
