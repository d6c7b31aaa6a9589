import { chargedWriteRate, type Rates, RETENTIONS } from "../catalog/price.ts";
import { NO_TOKENS, type Tokens } from "../catalog/tokens.ts";
import type { Tags } from "../customers/keys/tags.ts";
import { type EpochMs, isoTime } from "../units/clock.ts";
import type { ErrorCode } from "../units/errors/codes.ts";
import type { KeyId, ReceiptId } from "../units/id.ts";
import type { Trace } from "../units/trace-context.ts";
import { type NanoPerMillion, type NanoUsd, usdFromNano, ZERO_USD } from "../units/usd.ts";
import type { Recovered } from "./recovery.ts";

/**
 * What became of one request, as its owner may read it. Contract, section 5. Prompts and answers are never in
 * it.
 */
export interface Receipt {
  readonly id: ReceiptId;
  readonly createdAt: EpochMs;
  readonly state: "settled" | "written_off" | "refused" | "failed" | "cancelled" | "recovered";
  readonly surface: string;
  readonly keyId: KeyId;
  /** The run that it was one of; left out where it was of none. */
  readonly run?: string | undefined;
  /** Empty where it is not known: the request named none, or was refused unread. */
  readonly modelRequested: string;
  /** The model and host that served; null when none did. */
  readonly model: string | null;
  readonly host: string | null;
  readonly attempts: readonly AttemptRecord[];
  readonly stream: boolean;
  readonly tokens: Tokens;
  /** Reported by the host, or counted by the gateway from the text. */
  readonly tokensFrom: "host" | "counted";
  /** The rates of the step that the prompt reached. */
  readonly price: Rates | null;
  /** Names all prices that were in force; absent where that is not known. */
  readonly priceVersion?: string;
  /** What its sender wants it counted under; left out where that is nothing. */
  readonly tags?: Tags | undefined;
  /** The price list that they are of; left out where they are the models' own. */
  readonly priceList?: string | undefined;
  /** What the cost is made of, where the host had several models write; left out where it is the tokens at the price. */
  readonly charges?: readonly ReceiptCharge[] | undefined;
  readonly cost: NanoUsd;
  readonly held: NanoUsd;
  readonly writeOff: NanoUsd;
  readonly firstTokenMs: number | null;
  readonly totalMs: number | null;
  readonly errorCode: ErrorCode | null;
}

/** What one of several models used, at its own price. */
export interface ReceiptCharge {
  readonly model: string;
  readonly tokens: Tokens;
  readonly price: Rates;
  readonly cost: NanoUsd;
}

/** A generation request that has ended, as metrics, logs and traces see it. */
export interface FinishedRequest extends Omit<Receipt, "keyId"> {
  /** Null when the request carried no valid key. */
  readonly keyId: KeyId | null;
  readonly trace: RequestTrace | null;
}

export interface RequestTrace extends Trace {
  /** The request's arrival, by the wall clock and monotonic, as the attempts' own times are. */
  readonly startedAt: EpochMs;
  readonly startedMs: number;
  /** What its client calls the session that it is a part of; null where it names none. */
  readonly conversation: string | null;
}

/** The receipt as JSON: amounts in USD, times in ISO 8601, prices in USD per million tokens. */
export function formatReceipt(receipt: Receipt): string {
  const { tokens, price } = receipt;
  return JSON.stringify({
    id: receipt.id,
    created_at: isoTime(receipt.createdAt),
    state: receipt.state,
    surface: receipt.surface,
    key_id: receipt.keyId,
    run: receipt.run,
    tags: receipt.tags,
    price_list: receipt.priceList,
    model_requested: receipt.modelRequested || null,
    model: receipt.model,
    host: receipt.host,
    attempts: receipt.attempts.map(publicTry),
    stream: receipt.stream,
    tokens: { ...publicTokens(tokens), source: receipt.tokensFrom },
    price: price === null ? null : publicPrice(price, tokens, receipt.priceVersion),
    charges: receipt.charges?.map((charge) => ({
      model: charge.model,
      tokens: publicTokens(charge.tokens),
      price: publicPrice(charge.price, charge.tokens, undefined),
      cost_usd: usdFromNano(charge.cost),
    })),
    cost_usd: usdFromNano(receipt.cost),
    held_usd: usdFromNano(receipt.held),
    write_off: receipt.writeOff > 0 || receipt.state === "written_off",
    write_off_usd: usdFromNano(receipt.writeOff),
    first_token_ms: rounded(receipt.firstTokenMs),
    total_ms: rounded(receipt.totalMs),
    error_code: receipt.errorCode,
  });
}

/** The receipt of a request that opened no hold. It is kept in memory, so a long model name is cut. */
export const refusedReceipt = (
  request: Pick<
    Receipt,
    "id" | "createdAt" | "surface" | "modelRequested" | "stream" | "totalMs" | "errorCode"
  >,
): Omit<Receipt, "keyId"> => ({
  ...request,
  state: "refused",
  modelRequested: request.modelRequested.slice(0, MAX_KEPT_MODEL),
  model: null,
  host: null,
  attempts: [],
  tokens: NO_TOKENS,
  tokensFrom: "counted",
  price: null,
  cost: ZERO_USD,
  held: ZERO_USD,
  writeOff: ZERO_USD,
  firstTokenMs: null,
});

const MAX_KEPT_MODEL = 200;

/**
 * The receipt of a request whose process died while it was open. Who was asked and when the first token came
 * is known of streams that a checkpoint has seen; when it ended is not known.
 */
export const recoveredReceipt = ({ hold, held, tokens, price, charged, writtenOff }: Recovered): string =>
  formatReceipt({
    id: hold.receipt,
    createdAt: hold.at,
    state: "recovered",
    surface: hold.about.surface,
    keyId: hold.key,
    run: hold.about.run,
    tags: hold.about.tags,
    priceList: hold.about.priceList,
    modelRequested: hold.about.model,
    model: hold.served?.model ?? null,
    host: hold.served?.host ?? null,
    attempts: (hold.served?.attempts ?? []) as readonly AttemptRecord[],
    stream: hold.about.stream,
    tokens,
    tokensFrom: "counted",
    price,
    cost: charged,
    held,
    writeOff: writtenOff,
    firstTokenMs: hold.served?.firstTokenMs ?? null,
    totalMs: null,
    errorCode: null,
  });

const publicTry = ({ host, model, outcome, ms, detail }: AttemptRecord) => ({
  host,
  model,
  outcome,
  ms: Math.round(ms),
  detail,
});

const publicTokens = (tokens: Tokens) => ({
  input: tokens.input,
  // Left out where there is none.
  audio_input: tokens.audioInput || undefined,
  cache_read: tokens.cacheRead,
  cache_write: tokens.cacheWrite,
  ...writesOf(tokens, (written) => written),
  output: tokens.output,
  audio_output: tokens.audioOutput || undefined,
  reasoning: tokens.reasoning,
});

const publicPrice = (rates: Rates, tokens: Tokens, version: string | undefined) => {
  const { prompt, input, output, cacheRead, cacheWrite, audioInput, audioOutput } = rates;
  return {
    version,
    above_prompt: prompt,
    input: perMillion(input),
    audio_input: tokens.audioInput ? perMillion(audioInput ?? input) : undefined,
    output: perMillion(output),
    audio_output: tokens.audioOutput ? perMillion(audioOutput ?? output) : undefined,
    cache_read: perMillion(cacheRead),
    cache_write: perMillion(cacheWrite),
    ...writesOf(tokens, (_, retention) => perMillion(chargedWriteRate(rates, retention))),
  };
};

/** `cache_write_1h` and the like, for what was written with such a retention. */
function writesOf(
  { cacheWrites }: Tokens,
  value: (written: number, retention: (typeof RETENTIONS)[number]) => number,
): Record<string, number> | undefined {
  if (cacheWrites === undefined) return undefined;
  const members: Record<string, number> = {};
  for (const retention of RETENTIONS) {
    const written = cacheWrites[retention] ?? 0;
    if (written > 0) members[`cache_write_${retention}`] = value(written, retention);
  }
  return members;
}

const perMillion = (price: NanoPerMillion): number => price / 1_000_000_000;
const rounded = (ms: number | null): number | null => (ms === null ? null : Math.round(ms * 10) / 10);

/** The outcome of an attempt whose request another host answered first, as receipts have it. */
export const LOST_HEDGE = "outrun";

/** One host tried, as the receipt lists it. */
export interface AttemptRecord {
  readonly host: string;
  readonly model: string;
  /**
   * `opened` and `answered` served; `declined` is a refusal for policy reasons, without content; `rejected` is the host's
   * verdict on the request itself; `refused` (an error status or event), `unreachable` and `silent` are the host's failures;
   * `abandoned` means that the client left.
   */
  readonly outcome:
    | "opened"
    | "answered"
    | "declined"
    | "rejected"
    | "refused"
    | "unreachable"
    | "silent"
    | "abandoned"
    | typeof LOST_HEDGE;
  readonly ms: number;
  /** What the host said or did, for people; null when it served. */
  readonly detail: string | null;
  /**
   * The error status that the host answered with, and what broke below HTTP. Neither quotes the host, so logs
   * may contain them.
   */
  readonly status?: number | undefined;
  readonly fault?: HostFaultKind | undefined;
  /** What the host said that its refusal used; not in the receipt. */
  readonly tokens?: Tokens | null;
  /** Its span, if the request is traced; the time is monotonic. */
  readonly span?: { readonly id: string; readonly startedMs: number };
}

export type HostFaultKind =
  | "dns"
  | "refused"
  | "tls"
  | "connect_timeout"
  /** The connection broke before a whole response head had arrived. */
  | "reset"
  /** The body ended before its declared end. */
  | "truncated"
  /** Not HTTP/1.1 as the standard has it, or larger than a bound. */
  | "malformed"
  /** A fault of the gateway's own, at this answer. */
  | "internal"
  | "cancelled";
