import type { Price } from "../catalog/price.ts";
import type { Tags } from "../customers/keys/tags.ts";
import type { EpochMs } from "../units/clock.ts";
import type { BalanceId, KeyId, ReceiptId } from "../units/id.ts";
import type { NanoUsd } from "../units/usd.ts";
import type { CounterId } from "./counter.ts";

/**
 * What the ledger journals, in order. A hold is open until a terminal record names the same receipt, so replaying the records
 * yields the open holds at any moment.
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
  /** Counters that hold only the part between two amounts; null: without end. */
  readonly parts?: readonly (readonly [CounterId, from: NanoUsd, to: NanoUsd | null])[] | undefined;
  /** Counters of requests, each of which holds one. */
  readonly allowances: readonly CounterId[];
  readonly price: Price;
  readonly promptTokens: number;
  /** What a receipt written by recovery shows of the request. */
  readonly about: HoldSubject;
  /** The model and host that answer. When a stream has started, the record is written again with them. */
  readonly served?: ServedBy | undefined;
}

/** The model and host that answer a request, and their price. */
export interface ServedBy {
  readonly model: string;
  readonly host: string;
  readonly price: Price;
  /** For the receipt: the hosts that were tried, and the time until the first token. */
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
  readonly run?: string | undefined;
  readonly tags?: Tags | undefined;
  /** Absent if the models' own prices apply. */
  readonly priceList?: string | undefined;
}

/** The hold is now `held` in all, so that replaying the record twice changes nothing. */
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
  /** What the host charged the operator; absent if unknown. */
  readonly hostCost?: NanoUsd | undefined;
  /** Counters of the whole charge. */
  readonly counters: readonly CounterId[];
  /** Counters of a part of the charge. */
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

/** Parses one journal line, whose checksum was verified. */
export const parseRecord = (text: string): LedgerRecord =>
  parseTerminal(text) ?? (JSON.parse(text) as LedgerRecord);

/** Null for a record of another kind. Cuts the receipt out unparsed: see `formatRecord`. */
export function parseTerminal(text: string): TerminalRecord | null {
  if (!text.startsWith(TERMINAL)) return null;
  const bodyAt = text.indexOf(BODY);
  return {
    ...(JSON.parse(`${text.slice(0, bodyAt)}}`) as Omit<TerminalRecord, "body">),
    body: text.slice(bodyAt + BODY.length, -1),
  };
}

/** Inserts the receipt, which is JSON already, unquoted: quoting it would cost as much as writing it did. */
export function formatRecord(record: LedgerRecord): string {
  if (record.kind !== "terminal") return JSON.stringify(record);
  const { kind, receipt, state, at, balance, key } = record;
  const { charged, writtenOff, lost, hostCost, counters, parts, allowances, body } = record;
  // Named one by one: that costs half of a rest pattern.
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
    hostCost,
    counters,
    parts,
    allowances,
  };
  return `${JSON.stringify(rest).slice(0, -1)}${BODY}${body}}`;
}

const TERMINAL = '{"kind":"terminal"';
/** No member before it has text that could spell this: they are numbers, ids and states. */
const BODY = ',"body":';
