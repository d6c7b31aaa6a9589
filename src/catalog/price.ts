import type { NanoPerMillion } from "../units/usd.ts";

/** For how long hosts keep what they cache of a prompt, shortest first. */
export const RETENTIONS = ["5m", "30m", "1h", "12h"] as const;
export type CacheRetention = (typeof RETENTIONS)[number];

/** Prices by retention, or tokens. */
export type ByRetention<Value> = Readonly<Partial<Record<CacheRetention, Value>>>;

interface Lines {
  readonly input: NanoPerMillion;
  readonly output: NanoPerMillion;
  readonly cacheRead: NanoPerMillion;
  /** For writes that the host keeps as long as it does by default, and for no longer than any of `cacheWrites`. */
  readonly cacheWrite: NanoPerMillion;
  /** For writes that are kept longer; a longer retention without a price is not sold. Absent: all are as `cacheWrite`. */
  readonly cacheWrites?: ByRetention<NanoPerMillion>;
  /** For audio in a prompt; absent: as `input`. */
  readonly audioInput?: NanoPerMillion;
  /** For audio in an answer; absent: as `output`. */
  readonly audioOutput?: NanoPerMillion;
}

/** What a token of each kind costs in one request. */
export interface Rates extends Lines {
  readonly above?: undefined;
  /** They are those of a step. */
  readonly prompt?: number;
}

/** What a model costs: its rates, and others for requests whose prompt is longer. */
export interface Price extends Lines {
  /** Shortest prompt first; each step has the kinds of the price, and none is cheaper than the step before. */
  readonly above?: readonly PriceStep[] | undefined;
}

/** The rates of a whole request whose prompt has more than `prompt` tokens. */
export interface PriceStep extends Rates {
  readonly prompt: number;
}

/** The rates of a request with so many tokens in its prompt, those of the cache among them. */
export function ratesAt(price: Price, promptTokens: number): Rates {
  if (price.above === undefined) return price as Rates;
  return stepAt(price, promptTokens) ?? { ...price, above: undefined };
}

function stepAt({ above = [] }: Price, promptTokens: number): PriceStep | null {
  return above.findLast(({ prompt }) => promptTokens > prompt) ?? null;
}

/** What writes of that retention cost; null where they have no price. */
export function writeRate(
  { cacheWrite, cacheWrites }: Rates,
  retention: CacheRetention,
): NanoPerMillion | null {
  if (cacheWrites === undefined) return cacheWrite;
  const own = cacheWrites[retention];
  if (own !== undefined) return own;
  const named = RETENTIONS.findIndex((one) => cacheWrites[one] !== undefined);
  return named === -1 || RETENTIONS.indexOf(retention) < named ? cacheWrite : null;
}

/** What such writes are charged at: a host may report a retention that was neither requested nor priced. */
export const chargedWriteRate = (rates: Rates, retention: CacheRetention): NanoPerMillion =>
  writeRate(rates, retention) ?? mostOf([rates.cacheWrite, ...Object.values(rates.cacheWrites ?? {})]);

/** The most expensive write of those that a request names, and of the default. */
export const highestWrite = (rates: Rates, named: ByRetention<unknown>): NanoPerMillion =>
  mostOf([
    rates.cacheWrite,
    ...RETENTIONS.flatMap((one) => (named[one] === undefined ? [] : chargedWriteRate(rates, one))),
  ]);

/** What has a rate, as files call it; null where a price has none of its own for it. */
export const RATE_LINES = {
  input: ({ input }) => input,
  output: ({ output }) => output,
  cache_read: ({ cacheRead }) => cacheRead,
  cache_write: ({ cacheWrite }) => cacheWrite,
  cache_write_30m: ({ cacheWrites }) => cacheWrites?.["30m"] ?? null,
  cache_write_1h: ({ cacheWrites }) => cacheWrites?.["1h"] ?? null,
  cache_write_12h: ({ cacheWrites }) => cacheWrites?.["12h"] ?? null,
  audio_input: ({ audioInput }) => audioInput ?? null,
  audio_output: ({ audioOutput }) => audioOutput ?? null,
} satisfies Record<string, (rates: Rates) => NanoPerMillion | null>;

/** The same lines at other rates; all writes to a cache are the line `cacheWrite`. */
export function mapRates(
  rates: Rates,
  change: (rate: NanoPerMillion, line: RateLine) => NanoPerMillion,
): Rates {
  const { cacheWrites, audioInput, audioOutput } = rates;
  const writes = Object.entries(cacheWrites ?? {}).map(([name, rate]) => [name, change(rate, "cacheWrite")]);
  return {
    input: change(rates.input, "input"),
    output: change(rates.output, "output"),
    cacheRead: change(rates.cacheRead, "cacheRead"),
    cacheWrite: change(rates.cacheWrite, "cacheWrite"),
    ...(cacheWrites === undefined ? {} : { cacheWrites: Object.fromEntries(writes) }),
    ...(audioInput === undefined ? {} : { audioInput: change(audioInput, "audioInput") }),
    ...(audioOutput === undefined ? {} : { audioOutput: change(audioOutput, "audioOutput") }),
  };
}

type RateLine = Exclude<keyof Lines, "cacheWrites">;

/** No more than the whole, the longest retention first. */
export function writesWithin(writes: ByRetention<number>, whole: number): ByRetention<number> {
  let left = whole;
  const kept: { [Name in CacheRetention]?: number } = {};
  for (const retention of RETENTIONS.toReversed()) {
    const written = Math.min(writes[retention] ?? 0, left);
    left -= written;
    if (written > 0) kept[retention] = written;
  }
  return kept;
}

/** Bounds all of the prices, kind by kind and prompt by prompt. */
export function highestPrice(prices: readonly Price[]): Price {
  if (prices.length === 1) return prices[0]!;
  const steps = new Set(prices.flatMap(({ above = [] }) => above.map(({ prompt }) => prompt)));
  const base = boundingRates(prices.map((price) => ratesAt(price, 0)));
  if (steps.size === 0) return base;
  const above = [...steps]
    .sort((a, b) => a - b)
    .map((prompt) => ({ ...boundingRates(prices.map((price) => ratesAt(price, prompt + 1))), prompt }));
  return { ...base, above };
}

function boundingRates(all: readonly Rates[]): Rates {
  const most = (kind: (rates: Rates) => NanoPerMillion) => mostOf(all.map(kind));
  const named = RETENTIONS.filter((one) => all.some(({ cacheWrites }) => cacheWrites?.[one] !== undefined));
  const writes = named.map((one) => [one, most((rates) => highestWrite(rates, { [one]: true }))]);
  return {
    input: most(({ input }) => input),
    output: most(({ output }) => output),
    cacheRead: most(({ cacheRead }) => cacheRead),
    cacheWrite: most(({ cacheWrite }) => cacheWrite),
    ...(named.length === 0 ? {} : { cacheWrites: Object.fromEntries(writes) }),
    audioInput: most(({ input, audioInput = input }) => audioInput),
    audioOutput: most(({ output, audioOutput = output }) => audioOutput),
  };
}

const mostOf = (all: readonly NanoPerMillion[]): NanoPerMillion => Math.max(0, ...all) as NanoPerMillion;
