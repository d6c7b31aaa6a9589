import type { EpochMs } from "../../units/clock.ts";
import { StoreUnreachable } from "../../units/errors/bookkeeping.ts";
import type { BalanceId, KeyId } from "../../units/id.ts";
import type { KeyActivity, KeyActivityScope } from "./key-activity.ts";
import type { Spending, SpendingScope } from "./spending.ts";
import type { UsageSplit, UsageSums } from "./usage-sums.ts";

/**
 * Sums over receipts, for charts. Tens of thousands of receipts take longer to read than any stream should
 * wait, so a thread with its own connection reads them; it starts with the first question.
 */
export class UsageReader {
  private thread: Worker | null = null;
  private readonly waiting = new Map<number, PendingUsage>();
  private nextId = 0;
  private latestList: { of: KeyActivityScope; activity: readonly KeyActivity[] } | null = null;

  /** `path` of the SQLite file, or the address of a PostgreSQL. */
  constructor(
    private readonly path: string,
    private readonly maxWaiting: number,
  ) {}

  /** Null when too much is being asked at once. */
  sums(of: UsageScope): Promise<UsageSums | null> {
    return this.query<UsageSums>({ kind: "sums", of });
  }

  /** Everybody's spending; may take seconds. Null when too many questions wait. */
  spending(of: SpendingScope): Promise<Spending | null> {
    return this.query<Spending>({ kind: "spending", of });
  }

  /**
   * What the keys of a balance were charged, and when they were last used. Null as above. `isNext`: for a further page of a
   * list, whose order stays as it was if no other list was read since.
   */
  async keyActivity(of: KeyActivityScope, isNext: boolean): Promise<readonly KeyActivity[] | null> {
    const { latestList: latest } = this;
    if (isNext && latest !== null && Bun.deepEquals(latest.of, of)) return latest.activity;
    const activity = await this.query<readonly KeyActivity[]>({ kind: "keys", of });
    if (activity !== null) this.latestList = { of, activity };
    return activity;
  }

  private query<T extends UsageResult>(query: UsageQuery): Promise<T | null> {
    if (this.waiting.size >= this.maxWaiting || this.isBusyFor(query)) return Promise.resolve(null);
    const id = this.nextId++;
    return new Promise((resolve, reject) => {
      this.waiting.set(id, {
        balanceId: balanceOf(query),
        resolve: resolve as PendingUsage["resolve"],
        reject,
      });
      this.running().postMessage({ id, path: this.path, ...query } satisfies UsageQuestion);
    });
  }

  /** One balance must not keep all others from their charts. */
  private isBusyFor(query: UsageQuery): boolean {
    const balance = balanceOf(query);
    if (balance === null) return false;
    let waiting = 0;
    for (const { balanceId } of this.waiting.values()) if (balanceId === balance) waiting += 1;
    return waiting >= MAX_CHARTS_OF_ONE;
  }

  stop(): void {
    this.thread?.terminate();
    this.thread = null;
    for (const { resolve } of this.waiting.values()) resolve(null);
    this.waiting.clear();
  }

  private running(): Worker {
    if (this.thread !== null) return this.thread;
    const thread = new Worker(new URL("./usage-thread.ts", import.meta.url), { ref: false } as WorkerOptions);
    thread.onmessage = ({ data }: MessageEvent<UsageThreadAnswer>) => {
      const waiting = this.waiting.get(data.id);
      this.waiting.delete(data.id);
      if ("sums" in data) waiting?.resolve(data.sums);
      else waiting?.reject(new (data.unreachable ? StoreUnreachable : Error)(data.problem));
    };
    thread.onerror = () => this.stop();
    this.thread = thread;
    return thread;
  }
}

/** Which receipts, and how long a stretch of time is. */
export interface UsageScope {
  /** Null for everybody's. */
  readonly balanceId: BalanceId | null;
  readonly keyId: KeyId | null;
  /** Null for those of any run, or none. */
  readonly run?: string | null;
  readonly since: EpochMs;
  /** Receipts before then; all where it is not named, or null. */
  readonly until?: EpochMs | null;
  readonly stretchMs: number;
  /** What a stretch is split by; by model unless named. */
  readonly by?: UsageSplit;
  /** The name of a tag whose values are summed up; null: of none. */
  readonly tag?: string | null;
}

type UsageQuery =
  | { readonly kind: "sums"; readonly of: UsageScope }
  | { readonly kind: "keys"; readonly of: KeyActivityScope }
  | { readonly kind: "spending"; readonly of: SpendingScope };

const balanceOf = (query: UsageQuery): BalanceId | null =>
  query.kind === "spending" ? null : query.of.balanceId;

export type UsageResult = UsageSums | Spending | readonly KeyActivity[];

export type UsageQuestion = UsageQuery & { readonly id: number; readonly path: string };

export type UsageThreadAnswer =
  | { readonly id: number; readonly sums: UsageResult }
  | { readonly id: number; readonly problem: string; readonly unreachable: boolean };

interface PendingUsage {
  /** Whose receipts; null for everybody's. */
  readonly balanceId: BalanceId | null;
  resolve(sums: UsageResult | null): void;
  reject(error: Error): void;
}

/** Questions at once: charts come from any owner, and each takes half a second at most. */
export const MAX_CHARTS = 16;
const MAX_CHARTS_OF_ONE = 4;
/** From the operator alone; each may take nine seconds, which charts should not wait for. */
export const MAX_SPENDINGS = 2;
