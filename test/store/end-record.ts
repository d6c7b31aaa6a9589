import type { TerminalRecord } from "../../src/ledger/record.ts";
import type { EpochMs } from "../../src/units/clock.ts";
import type { NanoUsd } from "../../src/units/usd.ts";

const NOTHING = 0 as NanoUsd;

/** The end of a request that cost a nano-dollar. */
export const end = (name: string | number): TerminalRecord => ({
  kind: "terminal",
  receipt: `rcpt_${name}`,
  state: "settled",
  at: 1_000 as EpochMs,
  balance: "bal_1",
  key: "key_1",
  charged: 1 as NanoUsd,
  writtenOff: NOTHING,
  lost: NOTHING,
  counters: [],
  allowances: [],
  body: "{}",
});
