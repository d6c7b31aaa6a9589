import { expect, test } from "bun:test";
import { Receipts } from "../../src/generation/refused-receipts.ts";
import { refusedReceipt } from "../../src/ledger/receipt.ts";
import { epochMs } from "../../src/units/clock.ts";
import type { BalanceId, KeyId, ReceiptId } from "../../src/units/id.ts";
import type { NanoUsd } from "../../src/units/usd.ts";

const PAYING = "bal_paying" as BalanceId;
const EMPTY = "bal_empty" as BalanceId;
const UNKNOWN = "bal_unknown" as BalanceId;
const CREDIT = new Map([
  [PAYING, 1 as NanoUsd],
  [EMPTY, 0 as NanoUsd],
]);

test.each([
  [EMPTY, 20_000, true],
  [UNKNOWN, 20_000, true],
  [PAYING, 9_999, true],
  [PAYING, 10_000, false],
])(
  "a receipt of a paying balance is found behind those of %s, %i of them: %p",
  (balanceId, others, isFound) => {
    const books = { receipt: async () => null, receipts: async () => NONE, unbooked: () => null };
    const receipts = new Receipts(books, null, { known: (id) => CREDIT.get(id) ?? null });
    const keep = (id: string, of: BalanceId) =>
      receipts.keepRefused({ ...refused(id), keyId: "key_1" as KeyId, balanceId: of });
    keep("rcpt_first", PAYING);
    for (let number = 0; number < others; number++) keep(`rcpt_${number}`, balanceId);
    expect(receipts.here("rcpt_first" as ReceiptId) !== null).toBe(isFound);
    expect(receipts.here(`rcpt_${others - 1}` as ReceiptId)).not.toBeNull();
  },
);

const NONE = { receipts: [], nextBefore: null };

const refused = (id: string) =>
  refusedReceipt({
    id: id as ReceiptId,
    createdAt: epochMs(Date.UTC(2026, 0, 1)),
    surface: "messages",
    modelRequested: "a/b",
    stream: false,
    totalMs: 1,
    errorCode: "insufficient_credit",
  });
