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
  const keys = new Groups();
  const tags = new Groups<string | null>();
  const hosts = new Map<string, HostCounts>();
  // First tokens by key or value of a tag are in no answer, and by stretch in that of `all` alone.
  const isTimed = by === "all";
  let read = 0;
  for (const row of rows) {
    if (++read > maxRows) break;
    const receipt = JSON.parse(row.body) as ReceiptBody;
    const one = amountsOf(row, receipt);
    const model = receipt.model ?? receipt.model_requested;
    const name =
      by === "model" ? model : by === "key" ? row.keyId : by === "host" ? (receipt.host ?? "") : "";
    groupsOf(stretches, row.at - (row.at % stretchMs)).add(name, one, isTimed);
    groupsOf(routes, receipt.host).add(model, one, true);
    keys.add(row.keyId, one, false);
    if (tag !== null) tags.add(tagOf(receipt, tag), one, false);
    for (const attempt of receipt.attempts) addAttempt(hosts, attempt);
  }
  const models = new Groups();
  for (const ofHost of routes.values()) models.join(ofHost);
  return {
    stretches: [...stretches]
      .sort(([a], [b]) => a - b)
      .flatMap(([start, groups]) => groups.sums((name, sum, first) => ({ start, name, ...sum, ...first }))),
    models: models.sums((model, sum, first) => ({ model, ...sum, ...first })),
    keys: keys.sums((keyId, sum, _first, lastAt) => ({ keyId, lastAt, ...sum })),
    routes: [...routes].flatMap(([host, groups]) =>
      host === null ? [] : groups.sums((model, sum, first) => ({ model, host, ...sum, ...first })),
    ),
    ...shownTags(tags.sums((value, sum) => ({ value, ...sum }))),
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
  const sum = newGroup().sum;
  for (const other of others) for (const member of SUMMED) sum[member] += other[member];
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
  readonly attempts: readonly AttemptBody[];
  readonly tokens: {
    readonly input: number;
    readonly cache_read: number;
    readonly cache_write: number;
    readonly output: number;
  };
  readonly first_token_ms: number | null;
}

interface AttemptBody {
  readonly host: string;
  readonly outcome: string;
}

/** What a receipt adds to the sums that it is in. */
const amountsOf = ({ at, state, charged }: UsageRow, { tokens, first_token_ms }: ReceiptBody) => ({
  at,
  failed: FAILURES.has(state) ? 1 : 0,
  charged,
  input: tokens.input + tokens.cache_read + tokens.cache_write,
  output: tokens.output,
  firstTokenMs: first_token_ms,
});
type Amounts = ReturnType<typeof amountsOf>;

class Groups<Id extends string | null = string> {
  private readonly groups = new Map<Id, Group>();

  add(id: Id, { at, failed, charged, input, output, firstTokenMs }: Amounts, isTimed: boolean): void {
    const group = this.of(id);
    const { sum } = group;
    group.lastAt = Math.max(group.lastAt, at);
    sum.requests += 1;
    sum.failed += failed;
    sum.chargedNano += charged;
    sum.inputTokens += input;
    sum.outputTokens += output;
    if (isTimed && firstTokenMs !== null) group.firstTokens.push(firstTokenMs);
  }

  /** What others add up to, too. */
  join(others: Groups<Id>): void {
    for (const [id, other] of others.groups) {
      const { sum, firstTokens } = this.of(id);
      for (const member of SUMMED) sum[member] += other.sum[member];
      for (const ms of other.firstTokens) firstTokens.push(ms);
    }
  }

  sums<T>(view: (id: Id, sum: Sum, first: FirstTokens, lastAt: number) => T): T[] {
    return [...this.groups].map(([id, { sum, firstTokens, lastAt }]) => {
      const sorted = firstTokens.sort((a, b) => a - b);
      const first = { firstTokenMsP50: within(sorted, 0.5), firstTokenMsP95: within(sorted, 0.95) };
      return view(id, sum, first, lastAt);
    });
  }

  private of(id: Id): Group {
    let group = this.groups.get(id);
    if (group === undefined) this.groups.set(id, (group = newGroup()));
    return group;
  }
}

interface Group {
  readonly sum: { -readonly [K in keyof Sum]: number };
  readonly firstTokens: number[];
  lastAt: number;
}

const newGroup = (): Group => ({
  sum: { requests: 0, failed: 0, chargedNano: 0, inputTokens: 0, outputTokens: 0 },
  firstTokens: [],
  lastAt: 0,
});

const SUMMED = Object.keys(newGroup().sum) as (keyof Sum)[];

function groupsOf<Id>(groups: Map<Id, Groups>, id: Id): Groups {
  let found = groups.get(id);
  if (found === undefined) groups.set(id, (found = new Groups()));
  return found;
}

const FAILURES = new Set<string>(FAILED_STATES);

/** A refusal, what a host thinks of a request, a client that leaves and a faster host say nothing about the host. */
const SILENT_ON_THE_HOST = new Set(["declined", "rejected", "abandoned", LOST_HEDGE]);

function addAttempt(hosts: Map<string, HostCounts>, { host, outcome }: AttemptBody): void {
  if (SILENT_ON_THE_HOST.has(outcome)) return;
  let counts = hosts.get(host);
  if (counts === undefined) hosts.set(host, (counts = { attempts: 0, failed: 0 }));
  counts.attempts += 1;
  counts.failed += outcome === "opened" || outcome === "answered" ? 0 : 1;
}

type HostCounts = { -readonly [K in "attempts" | "failed"]: number };

/** Nearest rank. */
const within = (sorted: readonly number[], share: number): number | null =>
  sorted[Math.ceil(share * sorted.length) - 1] ?? null;
