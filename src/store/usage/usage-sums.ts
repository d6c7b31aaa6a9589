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
  const stretches = new Groups();
  const models = new Groups();
  const routes = new Groups();
  const keys = new Groups();
  const tags = new Groups<string | null>();
  const lastAt = new Map<string, number>();
  const hosts = new Map<string, { attempts: number; failed: number }>();
  let read = 0;
  for (const row of rows) {
    if (++read > maxRows) break;
    const receipt = JSON.parse(row.body) as ReceiptBody;
    const model = receipt.model ?? receipt.model_requested;
    const name = { model, key: row.keyId, host: receipt.host ?? "", all: "" }[by];
    stretches.add(`${row.at - (row.at % stretchMs)}\n${name}`, row, receipt);
    models.add(model, row, receipt);
    keys.add(row.keyId, row, receipt);
    if (tag !== null) tags.add(tagOf(receipt, tag), row, receipt);
    lastAt.set(row.keyId, Math.max(lastAt.get(row.keyId) ?? 0, row.at));
    if (receipt.host !== null) routes.add(`${receipt.host}\n${model}`, row, receipt);
    for (const attempt of receipt.attempts) addAttempt(hosts, attempt);
  }
  return {
    stretches: stretches
      .sums((id, sum, first) => {
        const [start, name] = parts(id);
        return { start: Number(start), name, ...sum, ...first };
      })
      .sort((a, b) => a.start - b.start),
    models: models.sums((model, sum, first) => ({ model, ...sum, ...first })),
    keys: keys.sums((keyId, sum) => ({ keyId, lastAt: lastAt.get(keyId)!, ...sum })),
    routes: routes.sums((id, sum, first) => {
      const [host, model] = parts(id);
      return { model, host, ...sum, ...first };
    }),
    ...shownTags(tags.sums((value, sum) => ({ value, ...sum }))),
    hosts: [...hosts].map(([host, counts]) => ({ host, ...counts })),
    truncated: read > maxRows,
  };
}

/** The names of a stretch or a route: the first has no line break. */
function parts(id: string): [string, string] {
  const end = id.indexOf("\n");
  return [id.slice(0, end), id.slice(end + 1)];
}

/** Null for a receipt without the tag, which is not one whose value is empty. */
const tagOf = ({ tags }: ReceiptBody, tag: string): string | null =>
  tags !== undefined && Object.hasOwn(tags, tag) ? tags[tag]! : null;

function shownTags(all: readonly TagSum[]): Pick<UsageSums, "tagValues" | "otherTagValues"> {
  const sorted = all.toSorted((a, b) => b.chargedNano - a.chargedNano || b.requests - a.requests);
  const others = sorted.slice(MAX_TAG_VALUES);
  const sumOf = (member: keyof Sum) => others.reduce((sum, one) => sum + one[member], 0);
  return {
    tagValues: sorted.slice(0, MAX_TAG_VALUES),
    otherTagValues:
      others.length === 0
        ? null
        : {
            requests: sumOf("requests"),
            failed: sumOf("failed"),
            chargedNano: sumOf("chargedNano"),
            inputTokens: sumOf("inputTokens"),
            outputTokens: sumOf("outputTokens"),
          },
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

class Groups<Id extends string | null = string> {
  private readonly groups = new Map<Id, Group>();

  add(id: Id, { state, charged }: UsageRow, { tokens, first_token_ms }: ReceiptBody): void {
    let group = this.groups.get(id);
    if (group === undefined) this.groups.set(id, (group = newGroup()));
    const { sum } = group;
    sum.requests += 1;
    sum.failed += FAILURES.has(state) ? 1 : 0;
    sum.chargedNano += charged;
    sum.inputTokens += tokens.input + tokens.cache_read + tokens.cache_write;
    sum.outputTokens += tokens.output;
    if (first_token_ms !== null) group.firstTokens.push(first_token_ms);
  }

  sums<T>(view: (id: Id, sum: Sum, first: FirstTokens) => T): T[] {
    return [...this.groups].map(([id, { sum, firstTokens }]) => {
      const sorted = firstTokens.sort((a, b) => a - b);
      return view(id, sum, { firstTokenMsP50: within(sorted, 0.5), firstTokenMsP95: within(sorted, 0.95) });
    });
  }
}

interface Group {
  readonly sum: { -readonly [K in keyof Sum]: number };
  readonly firstTokens: number[];
}

const newGroup = (): Group => ({
  sum: { requests: 0, failed: 0, chargedNano: 0, inputTokens: 0, outputTokens: 0 },
  firstTokens: [],
});

const FAILURES = new Set<string>(FAILED_STATES);

/** A refusal, what a host thinks of a request, a client that leaves and a faster host say nothing about the host. */
const SILENT_ON_THE_HOST = new Set(["declined", "rejected", "abandoned", LOST_HEDGE]);

function addAttempt(hosts: Map<string, { attempts: number; failed: number }>, attempt: AttemptBody): void {
  if (SILENT_ON_THE_HOST.has(attempt.outcome)) return;
  const counts = hosts.get(attempt.host) ?? { attempts: 0, failed: 0 };
  counts.attempts += 1;
  counts.failed += attempt.outcome === "opened" || attempt.outcome === "answered" ? 0 : 1;
  hosts.set(attempt.host, counts);
}

/** Nearest rank. */
const within = (sorted: readonly number[], share: number): number | null =>
  sorted[Math.ceil(share * sorted.length) - 1] ?? null;
