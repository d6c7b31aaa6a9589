import type { Price } from "../catalog/price.ts";
import type { Tags } from "../customers/keys/tags.ts";
import type { EpochMs } from "../units/clock.ts";
import type { BalanceId, KeyId, ReceiptId } from "../units/id.ts";
import type { NanoUsd } from "../units/usd.ts";
import type { CounterId } from "./counter.ts";

/**
 * What the ledger writes down, in the order in which it happened. A hold is open until a terminal record
 * names the same receipt; replaying the records in order therefore yields the open holds, whatever moment the
 * process died at.
 */
export type LedgerRecord = HoldRecord | ExtendRecord | DeliveredRecord | TerminalRecord;

export interface HoldRecord {
  readonly kind: "hold";
  readonly receipt: ReceiptId;
  readonly at: EpochMs;
  readonly balance: BalanceId;
  readonly key: KeyId;
  readonly amount: NanoUsd;
  /** Counters that the amount is held on. */
  readonly counters: readonly CounterId[];
  /** Counters that only what is held between two amounts is held on, or beyond one. */
  readonly parts?: readonly (readonly [CounterId, from: NanoUsd, to: NanoUsd | null])[];
  /** Allowance counters that one request is held on. */
  readonly allowances: readonly CounterId[];
  readonly price: Price;
  readonly promptTokens: number;
  /** What a receipt written by recovery shows of the request. */
  readonly about: HoldSubject;
  /** Who answers. It is known only once a stream has started, and then the record is written again. */
  readonly served?: ServedBy;
}

/** The model and host that answer a request, and their price. */
export interface ServedBy {
  readonly model: string;
  readonly host: string;
  readonly price: Price;
  /** For the receipt: the hosts that were asked, and the time until the first token. */
  readonly attempts: readonly Attempted[];
  readonly firstTokenMs: number;
}

interface Attempted {
  readonly host: string;
  readonly outcome: string;
  readonly ms: number;
  readonly detail: string | null;
}

export interface HoldSubject {
  readonly surface: string;
  readonly model: string;
  readonly stream: boolean;
  /** Left out where it is of none. */
  readonly run?: string | undefined;
  /** Left out where it has none. */
  readonly tags?: Tags | undefined;
  /** Left out where the models' own prices are charged. */
  readonly priceList?: string | undefined;
}

/** The hold grew or shrank to `held`: the whole, not the step, so that replaying it twice changes nothing. */
interface ExtendRecord {
  readonly kind: "extend";
  readonly receipt: ReceiptId;
  readonly held: NanoUsd;
}

/** Output tokens delivered so far, of every stream that moved since the last such record. */
interface DeliveredRecord {
  readonly kind: "delivered";
  readonly tokens: readonly (readonly [ReceiptId, number])[];
}

/**
 * How a receipt ended; there is exactly one for each. `refused` never appears here: a refusal opens no hold.
 */
export type TerminalState = "settled" | "written_off" | "failed" | "cancelled" | "recovered";

const IS_FAILURE = {
  settled: false,
  written_off: true,
  failed: true,
  cancelled: false,
  recovered: true,
} as const satisfies Record<TerminalState, boolean>;

/** The gateway or a host failed; a client that left is no failure. */
export const FAILED_STATES = Object.entries(IS_FAILURE).flatMap(([state, fails]) => (fails ? state : []));

export interface TerminalRecord {
  readonly kind: "terminal";
  readonly receipt: ReceiptId;
  readonly state: TerminalState;
  /** Time of admission: it decides which windows were charged. */
  readonly at: EpochMs;
  readonly balance: BalanceId;
  readonly key: KeyId;
  readonly charged: NanoUsd;
  /** Delivered but not billed, because the host failed early. */
  readonly writtenOff: NanoUsd;
  /** Delivered beyond what was held: the gateway's loss. */
  readonly lost: NanoUsd;
  /** What its host charged the operator; left out where that is not known. */
  readonly hostCost?: NanoUsd | undefined;
  /** What the charge is counted on. */
  readonly counters: readonly CounterId[];
  /** What only a part of it is counted on. */
  readonly parts?: readonly (readonly [CounterId, charged: NanoUsd])[] | undefined;
  readonly allowances: readonly CounterId[];
  /** The receipt as readers see it, JSON. */
  readonly body: string;
}

/** How much of an amount lies between two others. */
export const partOf = (
  { from, to }: { readonly from: NanoUsd; readonly to: NanoUsd | null },
  amount: NanoUsd,
): NanoUsd => Math.max(0, Math.min(amount, to ?? amount) - from) as NanoUsd;

/** Parses one journal line; it was checksummed, so its form is believed. */
export const parseRecord = (text: string): LedgerRecord =>
  parseTerminal(text) ?? (JSON.parse(text) as LedgerRecord);

/** Null for a record of another kind. The receipt goes out as it went in: see `formatRecord`. */
export function parseTerminal(text: string): TerminalRecord | null {
  if (!text.startsWith(TERMINAL)) return null;
  const bodyAt = text.indexOf(BODY);
  return {
    ...(JSON.parse(`${text.slice(0, bodyAt)}}`) as Omit<TerminalRecord, "body">),
    body: text.slice(bodyAt + BODY.length, -1),
  };
}

/**
 * The receipt is JSON already and goes in as it is: quoting it again would cost as much as writing it did.
 */
export function formatRecord(record: LedgerRecord): string {
  if (record.kind !== "terminal") return JSON.stringify(record);
  const { kind, receipt, state, at, balance, key } = record;
  const { charged, writtenOff, lost, hostCost, counters, parts, allowances, body } = record;
  // Named one by one, which costs half of what taking one out of them does.
  const rest: Omit<TerminalRecord, "body"> = {
    kind,
    receipt,
    state,
    at,
    balance,
    key,
    charged,
    writtenOff,
    lost,
    // Left out where it is not known.
    hostCost,
    counters,
    // Left out where there are none.
    parts,
    allowances,
  };
  return `${JSON.stringify(rest).slice(0, -1)}${BODY}${body}}`;
}

const TERMINAL = '{"kind":"terminal"';
/** No member before it has text that could spell this: they are numbers, ids and states. */
const BODY = ',"body":';
