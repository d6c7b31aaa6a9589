import type { FinishedRequest } from "../../src/ledger/receipt.ts";
import type { EpochMs } from "../../src/units/clock.ts";
import type { ReceiptId } from "../../src/units/id.ts";
import { ZERO_USD } from "../../src/units/usd.ts";

/** A request that ended well, recorded in a trace. */
export const doneOf = (id: string, more: Partial<FinishedRequest> = {}): FinishedRequest => ({
  id: `rcpt_${id}` as ReceiptId,
  createdAt: 1_763_000_000_000 as EpochMs,
  state: "settled",
  surface: "chat.completions",
  keyId: "key_test",
  modelRequested: "a/b",
  model: "a/b",
  host: "h",
  attempts: [],
  stream: false,
  tokens: { input: 1, cacheRead: 0, cacheWrite: 0, output: 2, reasoning: 0 },
  tokensFrom: "host",
  price: null,
  cost: ZERO_USD,
  held: ZERO_USD,
  writeOff: ZERO_USD,
  firstTokenMs: 10,
  totalMs: 20,
  errorCode: null,
  trace: {
    traceId: "4bf92f3577b34da6a3ce929d0e0e4736",
    spanId: "00f067aa0ba902b7",
    parentSpanId: null,
    sampled: true,
    startedAt: 1_763_000_000_000 as EpochMs,
    startedMs: 0,
    conversation: null,
  },
  ...more,
});
