import type { Clock, EpochMs, Timer } from "../units/clock.ts";
import type { EndStore } from "./books.ts";
import { places, type Unapplied } from "./journal.ts";

/**
 * Writes the books, in a thread of its own. It reads what it books from the journal's files, so that the event loop tells it no
 * more than how far they go. On the loop, an end cost 7 µs of each request, a batch held streams up for 2 ms, and a checkpoint, whose
 * syncs SQLite would leave to whichever commit comes last, for 5 and more.
 */
export class Bookkeeper implements EndStore {
  private thread: Worker | null = null;
  /** In the order in which they are answered. */
  private questions: Asked[] = [];
  private timer: Timer | null = null;
  private closed = false;

  /** `folder` holds the journal, `database` is the path of SQLite's file. The thread starts with the first question. */
  constructor(
    private readonly folder: string,
    private readonly database: string,
    private readonly clock: Pick<Clock, "after">,
    private readonly onFault: (error: unknown) => void,
  ) {
    this.copyLogLater();
  }

  async apply(batch: readonly Unapplied[]): Promise<void> {
    await this.ask({ kind: "apply", through: places(batch) });
  }

  /**
   * True once all that was committed before this call will outlive a power cut; false when that did not come about, because
   * somebody still reads what was before.
   */
  async checkpoint(): Promise<boolean> {
    return (await this.ask({ kind: "checkpoint" })) === true;
  }

  async forgetReachedBefore(file: number): Promise<void> {
    await this.ask({ kind: "forget", file });
  }

  async fold(before: EpochMs): Promise<number> {
    return (await this.ask({ kind: "fold", before })) as number;
  }

  /** Once all that was asked is answered; whatever is asked later is rejected. */
  async close(): Promise<void> {
    this.timer?.cancel();
    const closed = this.thread === null ? null : this.ask({ kind: "close" });
    this.closed = true;
    try {
      await closed;
    } catch (error) {
      this.onFault(error);
    }
    this.gone(this.thread, CLOSED);
  }

  private copyLogLater(): void {
    this.timer = this.clock.after(COPY_LOG_EVERY_MS, () => {
      // A log that was not copied only grows until the next time.
      this.checkpoint()
        .catch(this.onFault)
        .finally(() => {
          if (!this.closed) this.copyLogLater();
        });
    });
  }

  private ask(task: BookkeepingTask): Promise<unknown> {
    if (this.closed) return Promise.reject(CLOSED);
    const asked = Promise.withResolvers<unknown>();
    this.questions.push(asked);
    const { folder, database } = this;
    this.running().postMessage({ folder, database, task } satisfies BookkeepingQuestion);
    return asked.promise;
  }

  private running(): Worker {
    if (this.thread !== null) return this.thread;
    const thread = new Worker(new URL("./bookkeeper-thread.ts", import.meta.url));
    thread.onmessage = ({ data }: MessageEvent<BookkeepingAnswer>) => {
      // Who asked one that is gone has been told so.
      if (this.thread !== thread) return;
      const asked = this.questions.shift();
      if ("problem" in data) asked?.reject(new Error(data.problem));
      else asked?.resolve(data.result);
    };
    thread.onerror = ({ message }) => this.gone(thread, new Error(message));
    thread.addEventListener("close", () => this.gone(thread, new Error("the bookkeeper's thread has ended")));
    this.thread = thread;
    return thread;
  }

  /** The next that is asked is asked of another thread. */
  private gone(thread: Worker | null, why: Error): void {
    if (this.thread !== thread) return;
    thread?.terminate();
    this.thread = null;
    const { questions } = this;
    this.questions = [];
    for (const { reject } of questions) reject(why);
  }
}

/** The thread opens folder and database with the first question, whichever that is. */
export interface BookkeepingQuestion {
  readonly folder: string;
  readonly database: string;
  readonly task: BookkeepingTask;
}

type BookkeepingTask =
  /** How far the journal's files are now to be booked. */
  | { readonly kind: "apply"; readonly through: ReadonlyMap<number, number> }
  | { readonly kind: "checkpoint" }
  | { readonly kind: "forget"; readonly file: number }
  | { readonly kind: "fold"; readonly before: EpochMs }
  | { readonly kind: "close" };

export type BookkeepingAnswer = { readonly result: unknown } | { readonly problem: string };

type Asked = Pick<PromiseWithResolvers<unknown>, "resolve" | "reject">;

const CLOSED = new Error("the books are closed");
const COPY_LOG_EVERY_MS = 1_000;
