import { LOST_HEDGE } from "../../ledger/receipt.ts";
import { FAILED_STATES } from "../../ledger/record.ts";

/**
 * What receipts add up to: by stretch of time and something else, by model, by key, and by model and host. Made in a thread of
 * its own (usage-thread), and structured so that it can be handed from there as it is.
 */
export interface UsageSums {
  /** In order of time; a stretch without requests is left out. */
  readonly stretches: readonly TimedStretchSum[];
  readonly models: readonly ModelSum[];
  readonly keys: readonly KeySum[];
  /** By the model and the host that served it. */
  readonly routes: readonly RouteSum[];
  /** Every attempt at a host, those that another host made good included. */
  readonly hosts: readonly HostSum[];
  /** By value of the tag that was named, the most expensive first; null for receipts without it. */
  readonly tagValues: readonly TagSum[];
  /** Sum of values beyond those; null where there are none. */
  readonly otherTagValues: Sum | null;
  /** True when there were more receipts than are looked at: the oldest are left out. */
  readonly truncated: boolean;
}

export interface Sum {
  readonly requests: number;
  /** Ended in one of `FAILED_STATES`. */
  readonly failed: number;
  readonly chargedNano: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
}

/** What the sums of a stretch of time are split by: `all` is one sum a stretch. */
export type UsageSplit = "model" | "key" | "host" | "all";

export interface StretchSum extends Sum {
  /** Its beginning, ms since 1970. */
  readonly start: number;
  /** The model, key or host; empty where no host served, or nothing is split. */
  readonly name: string;
}

interface TimedStretchSum extends StretchSum, FirstTokens {}

interface FirstTokens {
  /** Half, and 19 of 20, of the first tokens came within this many ms; null when none came. */
  readonly firstTokenMsP50: number | null;
  readonly firstTokenMsP95: number | null;
}

export interface ModelSum extends Sum, FirstTokens {
  readonly model: string;
}

interface KeySum extends Sum {
  readonly keyId: string;
  /** When its newest request began. */
  readonly lastAt: number;
}

interface TagSum extends Sum {
  readonly value: string | null;
}

interface RouteSum extends Sum, FirstTokens {
  readonly model: string;
  readonly host: string;
}

export interface HostSum {
  readonly host: string;
  readonly attempts: number;
  readonly failed: number;
}

/** A receipt as the store holds it. */
export interface UsageRow {
  readonly at: number;
  readonly keyId: string;
  readonly state: string;
  readonly charged: number;
  /** JSON: see ledger/receipt. */
  readonly body: string;
}

interface SumScope {
  readonly stretchMs: number;
  readonly by?: UsageSplit;
  readonly tag?: string | null;
}

export function sumUsage(
  rows: Iterable<UsageRow>,
  { stretchMs, by = "model", tag = null }: SumScope,
  maxRows: number,
): UsageSums {
  const stretches = new Map<number, Groups>();
  const routes = new Map<string | null, Groups>();
  const keys = newGroups();
  const tags = new Map<string | null, Group>();
  const hosts = new Map<string, HostCounts>();
  // First tokens by key or value of a tag are in no answer, and by stretch in that of `all` alone.
  const isTimed = by === "all";
  let read = 0;
  for (const row of rows) {
    if (++read > maxRows) break;
    const receipt = JSON.parse(row.body) as ReceiptBody;
    const model = receipt.model ?? receipt.model_requested;
    const name = { model, key: row.keyId, host: receipt.host ?? "", all: "" }[by];
    const stretch = stretches.getOrInsertComputed(row.at - (row.at % stretchMs), newGroups);
    const route = routes.getOrInsertComputed(receipt.host, newGroups);
    const addTo = (group: Group, timed: boolean) => addReceipt(group, row, receipt, timed);
    addTo(stretch.getOrInsertComputed(name, newGroup), isTimed);
    addTo(route.getOrInsertComputed(model, newGroup), true);
    addTo(keys.getOrInsertComputed(row.keyId, newGroup), false);
    if (tag !== null) addTo(tags.getOrInsertComputed(tagOf(receipt, tag), newGroup), false);
    for (const { host, outcome } of receipt.attempts) {
      if (SILENT_ON_THE_HOST.has(outcome)) continue;
      const counts = hosts.getOrInsertComputed(host, newCounts);
      counts.attempts += 1;
      counts.failed += outcome === "opened" || outcome === "answered" ? 0 : 1;
    }
  }
  const models = newGroups();
  for (const ofHost of routes.values())
    for (const [model, group] of ofHost) join(models.getOrInsertComputed(model, newGroup), group);
  return {
    stretches: [...stretches]
      .sort(([a], [b]) => a - b)
      .flatMap(([start, names]) =>
        [...names].map(([name, group]) => ({ start, name, ...group.sum, ...firstTokensOf(group) })),
      ),
    models: [...models].map(([model, group]) => ({ model, ...group.sum, ...firstTokensOf(group) })),
    keys: [...keys].map(([keyId, { sum, lastAt }]) => ({ keyId, lastAt, ...sum })),
    routes: [...routes].flatMap(([host, ofHost]) =>
      host === null
        ? []
        : [...ofHost].map(([model, group]) => ({ model, host, ...group.sum, ...firstTokensOf(group) })),
    ),
    ...shownTags([...tags].map(([value, { sum }]) => ({ value, ...sum }))),
    hosts: [...hosts].map(([host, counts]) => ({ host, ...counts })),
    truncated: read > maxRows,
  };
}

/** Null for a receipt without the tag, which is not one whose value is empty. */
const tagOf = ({ tags }: ReceiptBody, tag: string): string | null =>
  tags !== undefined && Object.hasOwn(tags, tag) ? tags[tag]! : null;

function shownTags(all: readonly TagSum[]): Pick<UsageSums, "tagValues" | "otherTagValues"> {
  const sorted = all.toSorted((a, b) => b.chargedNano - a.chargedNano || b.requests - a.requests);
  const others = sorted.slice(MAX_TAG_VALUES);
  const sum = emptySum();
  for (const other of others) addAll(sum, other);
  return {
    tagValues: sorted.slice(0, MAX_TAG_VALUES),
    otherTagValues: others.length === 0 ? null : sum,
  };
}

const MAX_TAG_VALUES = 1_000;

interface ReceiptBody {
  readonly tags?: Readonly<Record<string, string>>;
  readonly model: string | null;
  readonly model_requested: string;
  readonly host: string | null;
  readonly attempts: readonly { readonly host: string; readonly outcome: string }[];
  readonly tokens: {
    readonly input: number;
    readonly cache_read: number;
    readonly cache_write: number;
    readonly output: number;
  };
  readonly first_token_ms: number | null;
}

/** Receipts that have something in common. */
interface Group {
  readonly sum: Writable<Sum>;
  readonly firstTokens: number[];
  lastAt: number;
}

const newGroup = (): Group => ({ sum: emptySum(), firstTokens: [], lastAt: 0 });

type Groups = Map<string, Group>;
const newGroups = (): Groups => new Map();

type HostCounts = Writable<Omit<HostSum, "host">>;
const newCounts = (): HostCounts => ({ attempts: 0, failed: 0 });

function addReceipt(
  group: Group,
  { at, state, charged }: UsageRow,
  { tokens, first_token_ms }: ReceiptBody,
  isTimed: boolean,
): void {
  const { sum, firstTokens } = group;
  group.lastAt = Math.max(group.lastAt, at);
  sum.requests += 1;
  sum.failed += FAILURES.has(state) ? 1 : 0;
  sum.chargedNano += charged;
  sum.inputTokens += tokens.input + tokens.cache_read + tokens.cache_write;
  sum.outputTokens += tokens.output;
  if (isTimed && first_token_ms !== null) firstTokens.push(first_token_ms);
}

function join(group: Group, other: Group): void {
  addAll(group.sum, other.sum);
  for (const ms of other.firstTokens) group.firstTokens.push(ms);
}

/** Nearest rank. */
function firstTokensOf({ firstTokens }: Group): FirstTokens {
  const sorted = firstTokens.sort((a, b) => a - b);
  const within = (share: number): number | null => sorted[Math.ceil(share * sorted.length) - 1] ?? null;
  return { firstTokenMsP50: within(0.5), firstTokenMsP95: within(0.95) };
}

const FAILURES = new Set<string>(FAILED_STATES);

/** A refusal, what a host thinks of a request, a client that leaves and a faster host say nothing about the host. */
const SILENT_ON_THE_HOST = new Set(["declined", "rejected", "abandoned", LOST_HEDGE]);

export type Writable<T> = { -readonly [K in keyof T]: T[K] };

export const emptySum = (): Writable<Sum> => ({
  requests: 0,
  failed: 0,
  chargedNano: 0,
  inputTokens: 0,
  outputTokens: 0,
});

/** Adds each member. */
export function addAll<S extends Sum>(sum: Writable<S>, other: S): void {
  for (const member of Object.keys(sum) as (keyof Sum)[]) sum[member] += other[member];
}
