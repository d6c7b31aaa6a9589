import type { Rates } from "../catalog/price.ts";
import { NO_TOKENS, type Tokens } from "../catalog/tokens.ts";
import type { ReceiptId } from "../units/id.ts";
import { type NanoUsd, ZERO_USD } from "../units/usd.ts";
import { costOf, ratesFor, within } from "./charge.ts";
import { type HoldRecord, type LedgerRecord, partOf, type TerminalRecord } from "./record.ts";

/** A hold that no terminal record closed: its process died. */
export interface OrphanHold {
  readonly hold: HoldRecord;
  held: NanoUsd;
  /** Output tokens at the last checkpoint. */
  delivered: number;
}

/**
 * Finds the open holds in a journal's records, in order. A repeated hold replaces the earlier one, because a new journal file
 * begins with the open holds.
 */
export class Replay {
  readonly orphans = new Map<ReceiptId, OrphanHold>();

  add(record: LedgerRecord): void {
    switch (record.kind) {
      case "hold":
        this.orphans.set(record.receipt, {
          hold: record,
          held: record.amount,
          delivered: this.orphans.get(record.receipt)?.delivered ?? 0,
        });
        return;
      case "extend": {
        const orphan = this.orphans.get(record.receipt);
        if (orphan !== undefined) orphan.held = record.held;
        return;
      }
      case "delivered":
        for (const [receipt, tokens] of record.tokens) {
          const orphan = this.orphans.get(receipt);
          if (orphan !== undefined) orphan.delivered = tokens;
        }
        return;
      case "terminal":
        this.orphans.delete(record.receipt);
        return;
    }
  }
}

/**
 * The end of a request whose process died. The charge is what the last checkpoint says was delivered, at the serving route's
 * price, never more than the hold; below `writeOffTokens` it is written off. `body` writes the receipt.
 */
export function recoveredEnd(
  orphan: OrphanHold,
  writeOffTokens: number,
  body: (recovered: Recovered) => string,
): TerminalRecord {
  const { hold, held, delivered } = orphan;
  const known: Tokens =
    delivered > 0 ? { ...NO_TOKENS, input: hold.promptTokens, output: delivered } : NO_TOKENS;
  const price = ratesFor(hold.served?.price ?? hold.price, known);
  const tokens = within(known, price, held);
  const cost = costOf(tokens, price);
  const [charged, writtenOff] = delivered < writeOffTokens ? [ZERO_USD, cost] : [cost, ZERO_USD];
  return {
    kind: "terminal",
    receipt: hold.receipt,
    state: "recovered",
    at: hold.at,
    balance: hold.balance,
    key: hold.key,
    charged,
    writtenOff,
    lost: ZERO_USD,
    counters: hold.counters,
    parts: hold.parts?.map(([id, from, to]) => [id, partOf({ from, to }, charged)] as const),
    allowances: delivered > 0 ? hold.allowances : [],
    body: body({ hold, held, tokens, price, charged, writtenOff }),
  };
}

export interface Recovered {
  readonly hold: HoldRecord;
  readonly held: NanoUsd;
  readonly tokens: Tokens;
  /** The serving route's rates, or else those of the hold. */
  readonly price: Rates;
  readonly charged: NanoUsd;
  readonly writtenOff: NanoUsd;
}
