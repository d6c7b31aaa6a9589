import type { Database } from "bun:sqlite";
import type { Clock, EpochMs } from "../../units/clock.ts";
import { Rounds } from "../../units/rounds.ts";
import { hasWalResetFix, sqliteVersion } from "./sqlite.ts";

/**
 * Maintains the database in a thread of its own. By itself, SQLite would copy its log into the database
 * inside some commit, with two syncs: 5 ms and more in which every stream stands still.
 */
export class SqliteMaintenance {
  private thread: Worker | null = null;
  /** In the order in which they are answered. */
  private questions: PendingTask[] = [];
  private readonly copies: Rounds;
  private closed = false;

  /** `database` is the path of SQLite's file. The thread starts with the first question. */
  constructor(
    private readonly database: string,
    clock: Pick<Clock, "after">,
    private readonly onFault: (error: unknown) => void,
  ) {
    // A log that was not copied merely grows until the next time.
    this.copies = new Rounds(clock, COPY_LOG_EVERY_MS, async () => {
      await this.checkpoint().catch(onFault);
    });
  }

  get isRunning(): boolean {
    return this.thread !== null;
  }

  /**
   * True once everything committed before this call survives a power cut; false when that could not be
   * achieved because somebody is still reading an older state.
   */
  async checkpoint(): Promise<boolean> {
    return (await this.run({ kind: "checkpoint" })) === true;
  }

  /** As `SqlLedgerStore.fold`. */
  async fold(before: EpochMs): Promise<number> {
    return (await this.run({ kind: "fold", before })) as number;
  }

  /** Resolves once everything asked has been answered; whatever is asked later is rejected. */
  async close(): Promise<void> {
    void this.copies.stop();
    const closed = this.thread === null ? null : this.run({ kind: "close" });
    this.closed = true;
    try {
      await closed;
    } catch (error) {
      this.onFault(error);
    }
    this.gone(this.thread, CLOSED);
  }

  private run(task: MaintenanceTask): Promise<unknown> {
    if (this.closed) return Promise.reject(CLOSED);
    const pending = Promise.withResolvers<unknown>();
    this.questions.push(pending);
    const { database } = this;
    this.running().postMessage({ database, task } satisfies MaintenanceQuestion);
    return pending.promise;
  }

  private running(): Worker {
    if (this.thread !== null) return this.thread;
    const thread = new Worker(new URL("./maintenance-thread.ts", import.meta.url));
    thread.onmessage = ({ data }: MessageEvent<MaintenanceAnswer>) => {
      // Callers of a thread that is gone have had their error.
      if (this.thread !== thread) return;
      const pending = this.questions.shift();
      if ("problem" in data) pending?.reject(new Error(data.problem));
      else pending?.resolve(data.result);
    };
    thread.onerror = ({ message }) => this.gone(thread, new Error(message));
    thread.addEventListener("close", () => this.gone(thread, new Error("the database's thread has ended")));
    this.thread = thread;
    return thread;
  }

  /** The next question starts another thread. */
  private gone(thread: Worker | null, why: Error): void {
    if (this.thread !== thread) return;
    thread?.terminate();
    this.thread = null;
    const { questions } = this;
    this.questions = [];
    for (const { reject } of questions) reject(why);
  }
}

/** Null where this SQLite loses commits if another connection copies the log (sqlite.ts). */
export const maintenanceOf = (
  db: Database,
  path: string,
  clock: Pick<Clock, "after">,
  onFault: (error: unknown) => void,
): SqliteMaintenance | null =>
  hasWalResetFix(sqliteVersion(db)) ? new SqliteMaintenance(path, clock, onFault) : null;

/** The thread opens the database with the first question, whichever that is. */
export interface MaintenanceQuestion {
  readonly database: string;
  readonly task: MaintenanceTask;
}

type MaintenanceTask =
  | { readonly kind: "checkpoint" }
  | { readonly kind: "fold"; readonly before: EpochMs }
  | { readonly kind: "close" };

export type MaintenanceAnswer = { readonly result: unknown } | { readonly problem: string };

type PendingTask = Pick<PromiseWithResolvers<unknown>, "resolve" | "reject">;

const CLOSED = new Error("the books are closed");
const COPY_LOG_EVERY_MS = 1_000;
