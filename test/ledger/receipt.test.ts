import { describe, expect, test } from "bun:test";
import { NO_TOKENS } from "../../src/catalog/tokens.ts";
import { formatReceipt, type Receipt, recoveredReceipt, refusedReceipt } from "../../src/ledger/receipt.ts";
import type { HoldRecord } from "../../src/ledger/record.ts";
import { recoveredEnd } from "../../src/ledger/recovery.ts";
import { epochMs } from "../../src/units/clock.ts";
import type { BalanceId, KeyId, ReceiptId } from "../../src/units/id.ts";
import { type NanoPerMillion, type NanoUsd, ZERO_USD } from "../../src/units/usd.ts";

const perMillion = (usd: number) => (usd * 1e9) as NanoPerMillion;
const PRICE = {
  input: perMillion(1),
  output: perMillion(2),
  cacheRead: perMillion(3),
  cacheWrite: perMillion(4),
} as NonNullable<Receipt["price"]>;

const RECEIPT: Receipt = {
  id: "rcpt_1" as ReceiptId,
  createdAt: epochMs(Date.UTC(2026, 0, 1)),
  state: "settled",
  surface: "messages",
  keyId: "key_1" as KeyId,
  modelRequested: "a/b",
  model: "a/b",
  host: "h",
  attempts: [],
  stream: true,
  tokens: {
    input: 10,
    audioInput: 2,
    cacheRead: 1,
    cacheWrite: 5,
    cacheWrites: { "1h": 4 },
    output: 20,
    audioOutput: 3,
    reasoning: 6,
  },
  tokensFrom: "host",
  price: PRICE,
  cost: ZERO_USD,
  held: ZERO_USD,
  writeOff: ZERO_USD,
  firstTokenMs: 12.34,
  totalMs: 56.78,
  errorCode: null,
};

describe("a receipt lists", () => {
  const read = (more: Partial<Receipt> = {}) => JSON.parse(formatReceipt({ ...RECEIPT, ...more }));

  test("tokens of each kind, and their price: its own, or that of the kind it is part of", () => {
    expect(read().tokens).toEqual({
      input: 10,
      audio_input: 2,
      cache_read: 1,
      cache_write: 5,
      cache_write_1h: 4,
      output: 20,
      audio_output: 3,
      reasoning: 6,
      source: "host",
    });
    expect(read().price).toEqual({
      input: 1,
      audio_input: 1,
      output: 2,
      audio_output: 2,
      cache_read: 3,
      cache_write: 4,
      cache_write_1h: 4,
    });
    const own = {
      audioInput: perMillion(5),
      audioOutput: perMillion(6),
      cacheWrites: { "1h": perMillion(7) },
    };
    expect(read({ price: { ...PRICE, ...own } }).price).toMatchObject({
      audio_input: 5,
      audio_output: 6,
      cache_write_1h: 7,
    });
  });

  test("neither audio nor long-lived cache where there is none", () => {
    const { tokens, price } = read({ tokens: NO_TOKENS });
    expect(Object.keys(tokens)).toEqual([
      "input",
      "cache_read",
      "cache_write",
      "output",
      "reasoning",
      "source",
    ]);
    expect(Object.keys(price)).toEqual(["input", "output", "cache_read", "cache_write"]);
  });

  test.each([
    ["settled", 0, false],
    ["settled", 5, true],
    ["written_off", 0, true],
  ] as const)("a write-off: %s with %i", (state, writeOff, written) => {
    expect(read({ state, writeOff: writeOff as NanoUsd }).write_off).toBe(written);
  });

  test("no model where none was named, times to a tenth of a millisecond, and a long name cut", () => {
    expect(read({ modelRequested: "" }).model_requested).toBeNull();
    expect(read()).toMatchObject({ first_token_ms: 12.3, total_ms: 56.8 });
    expect(read({ firstTokenMs: null }).first_token_ms).toBeNull();
    expect(refusedReceipt({ ...RECEIPT, modelRequested: "m".repeat(500) }).modelRequested).toHaveLength(200);
  });
});

describe("a request whose process died", () => {
  const hold: HoldRecord = {
    kind: "hold",
    receipt: RECEIPT.id,
    at: RECEIPT.createdAt,
    balance: "bal_1" as BalanceId,
    key: RECEIPT.keyId,
    amount: 100 as NanoUsd,
    counters: [],
    allowances: ["allowance:bal_1:0" as HoldRecord["allowances"][number]],
    price: { ...PRICE, input: 0, output: perMillion(1) } as HoldRecord["price"],
    promptTokens: 5,
    about: { surface: "messages", model: "a/b", stream: true },
  };
  const endOf = (delivered: number, served?: HoldRecord["served"]) => {
    const { body, ...end } = recoveredEnd(
      { hold: { ...hold, ...(served && { served }) }, held: 1_000_000 as NanoUsd, delivered },
      50,
      recoveredReceipt,
    );
    return { end, receipt: JSON.parse(body) };
  };

  test.each([
    [0, 0, 0, false],
    [49, 0, 49_000, true],
    [50, 50_000, 0, true],
  ])("%i tokens delivered: charged %i, written off %i", (delivered, charged, writtenOff, used) => {
    const { end } = endOf(delivered);
    expect(end).toMatchObject({ charged: charged as NanoUsd, writtenOff: writtenOff as NanoUsd });
    expect(end.allowances).toHaveLength(used ? 1 : 0);
  });

  test("is receipted with who answered it, and with nobody where that is not known", () => {
    expect(endOf(60).receipt).toMatchObject({ model: null, host: null, first_token_ms: null, attempts: [] });
    const price = { ...hold.price, output: perMillion(3) } as HoldRecord["price"];
    const served = { model: "c/d", host: "h", price, attempts: [], firstTokenMs: 7 };
    const { end, receipt } = endOf(60, served);
    expect(receipt).toMatchObject({ model: "c/d", host: "h", first_token_ms: 7, model_requested: "a/b" });
    expect(end.charged).toBe(180_000 as NanoUsd);
  });
});
