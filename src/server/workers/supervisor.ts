import { AddressThrottle, type Throttled, throttlesOf } from "../../ledger/limits/address.ts";
import { workerFolderPath } from "../../store/data-folder.ts";
import type { StoredReceipt } from "../../store/ledger/receipts.ts";
import { atMost, type Clock } from "../../units/clock.ts";
import type { ReceiptId } from "../../units/id.ts";
import type { Log } from "../../units/log.ts";
import { cannotListen } from "../listening.ts";
import { RUNTIME } from "../runtime.ts";
import {
  ANSWER_MS,
  type FromWorker,
  KEEPER,
  type SupervisorQueries,
  type ToWorker,
  type WorkerQueries,
} from "./messages.ts";
import { answerTo, Questions } from "./questions.ts";
import { SharedSlots } from "./shared-slots.ts";
import { WorkerReport } from "./worker-report.ts";

/**
 * `workers: N`: N gateways on one port, each a node of the shared store with a data folder of its own; where that
 * is SQLite, one more process keeps it, which is started before them and ends after them. The
 * kernel spreads connections over them. A worker that dies is restarted and recovers like any node. A worker
 * that notices that this process is gone ends itself (run.ts), so that the next supervisor finds folders and
 * port free.
 */
export class Supervisor {
  private readonly workers: WorkerProcess[];
  private readonly keeper = workerProcess(KEEPER);
  private readonly report: WorkerReport;
  private readonly slots: SharedSlots;
  private readonly throttles: Record<Throttled, AddressThrottle>;
  private stopping = false;
  /** No worker needs the keeper any more. */
  private drained = false;

  private constructor(
    private readonly options: SupervisorOptions,
    private readonly port: number,
  ) {
    this.workers = Array.from({ length: options.workers }, (_, index) => workerProcess(index + 1));
    this.slots = new SharedSlots(options.workers, (number, message) => {
      const worker = this.workers[number - 1];
      if (worker !== undefined) send(worker, message);
    });
    this.throttles = throttlesOf(() => new AddressThrottle(options.clock));
    this.report = new WorkerReport(options.clock, () =>
      [...this.workers, ...(options.isKept ? [this.keeper] : [])].map(({ number, serving, questions }) => ({
        number,
        requestState: serving ? () => questions.request("state") : null,
      })),
    );
  }

  /**
   * Starts the first worker, then the others; resolves with the first one's announcement when all are
   * serving.
   */
  static async start(options: SupervisorOptions): Promise<{ supervisor: Supervisor; announcement: string }> {
    const { port, release } = claimPort(options.hostname, options.port);
    const supervisor = new Supervisor(options, port);
    if (options.isKept && (await supervisor.begin(supervisor.keeper)) === null) {
      release();
      await supervisor.stop();
      throw new WorkersEnded("the keeper of the database did not start; why is said above.");
    }
    const starts = supervisor.workers.map((worker) => supervisor.begin(worker));
    // The first worker that is ready gets requests, whether or not the others are.
    options.onListening?.(() => supervisor.stop());
    const ready = await Promise.all(starts);
    release();
    const ended = ready.filter((announcement) => announcement === null).length;
    if (ended > 0) {
      await supervisor.stop();
      throw new WorkersEnded(
        `${ended} of ${ready.length} workers did not start; why is said above by each of them.`,
      );
    }
    return { supervisor, announcement: ready[0]! };
  }

  /** All workers read the configuration again. */
  reload(): void {
    for (const { child } of this.workers) child?.kill("SIGHUP");
  }

  /** Stops all workers, or hurries those that are stopping; resolves when they have ended. */
  async stop(): Promise<void> {
    this.stopping = true;
    for (const { child } of this.workers) child?.kill("SIGTERM");
    await Promise.all(this.workers.map(({ child }) => child?.exited));
    this.drained = true;
    const { keeper } = this;
    // One that has just started has nothing to end, and may not listen yet.
    if (keeper.serving) send(keeper, { kind: "end" });
    else keeper.child?.kill("SIGKILL");
    await keeper.child?.exited;
  }

  /** Null when the worker ended before it served. */
  private async begin(worker: WorkerProcess): Promise<string | null> {
    const { command, env, clock } = this.options;
    const startedMs = clock.elapsedMs();
    const child = Bun.spawn([...command], {
      env: {
        ...RUNTIME,
        ...env,
        ...this.environmentOf(worker),
      },
      stdin: "ignore",
      stdout: "pipe",
      stderr: "inherit",
      ipc: (message: FromWorker, from) => {
        // What a process said last may arrive after its end, when another has its place.
        if (from === worker.child) this.handleMessage(worker, message);
      },
    });
    worker.child = child;
    const announcement = await announced(child.stdout);
    worker.serving = announcement !== null;
    const served = announcement !== null;
    void child.exited.then((code) => this.ended(worker, served, startedMs, child.signalCode ?? code));
    return announcement;
  }

  private environmentOf({ number, isAgain }: WorkerProcess): Record<string, string> {
    const { dataFolder, socketFolder, workers } = this.options;
    return number === KEEPER
      ? { GATEWAY_KEEPER: String(workers), GATEWAY_DATA: dataFolder }
      : {
          GATEWAY_WORKER: String(number),
          GATEWAY_WORKERS: String(workers),
          ...(isAgain === true ? { GATEWAY_WORKER_AGAIN: "1" } : {}),
          ...(socketFolder === null ? {} : { GATEWAY_SOCKETS: socketFolder }),
          GATEWAY_DATA: workerFolderPath(dataFolder, number),
          PORT: String(this.port),
        };
  }

  private handleMessage(worker: WorkerProcess, message: FromWorker): void {
    switch (message.kind) {
      case "answer":
        return worker.questions.answered(message);
      case "given_back":
        return this.throttles[message.throttled].giveBack(message.block);
      case "question":
        return void this.answer(worker, message);
      case "slots_wanted":
      case "slots_returned":
        return this.slots.handleMessage(worker.number, message);
      case "rests":
      case "stays":
        for (const other of this.others(worker)) send(other, message);
    }
  }

  private async answer(worker: WorkerProcess, question: FromWorker & { kind: "question" }): Promise<void> {
    const { child } = worker;
    const answer = await answerTo(question, this.queriesOf(worker));
    // Another process in its place has asked nothing.
    if (worker.child === child) send(worker, answer);
  }

  private queriesOf(asker: WorkerProcess): SupervisorQueries {
    return {
      metrics: () => this.report.metrics(),
      hosts: () => this.report.hosts(),
      receipt: (id) => this.receiptOf(this.others(asker), id),
      throttle: (throttled, block, limit) => this.throttles[throttled].take(block, limit),
    };
  }

  /** Asks these workers for a receipt in their memory. Null when none has it, or those that may have it do not answer in time. */
  private async receiptOf(
    workers: readonly WorkerProcess[],
    receipt: ReceiptId,
  ): Promise<StoredReceipt | null> {
    const answers = workers.map(async ({ questions }) => {
      const found = await questions.request("receipt", receipt);
      return found ?? Promise.reject();
    });
    const first = Promise.any(answers).catch(() => null);
    return (await atMost(this.options.clock, ANSWER_MS, first)) ?? null;
  }

  private others(than: WorkerProcess): readonly WorkerProcess[] {
    return this.workers.filter((worker) => worker !== than && worker.serving);
  }

  private ended(worker: WorkerProcess, served: boolean, startedMs: number, by: string | number | null): void {
    worker.child = undefined;
    worker.serving = false;
    worker.questions.drop();
    if (this.isOver(worker)) return;
    const { clock, log } = this.options;
    this.report.ended(worker.number);
    if (worker.number !== KEEPER) this.slots.ended(worker.number);
    if (served) worker.isAgain = true;
    const lived = served && clock.elapsedMs() - startedMs > STEADY_MS;
    worker.failures = lived ? 0 : worker.failures + 1;
    const restartMs = Math.min(FIRST_RESTART_MS * 2 ** worker.failures, LAST_RESTART_MS);
    const [what, who] = worker.number === KEEPER ? ["keeper", {}] : ["worker", { worker: worker.number }];
    log(`${what} ended`, { ...who, by, restart_ms: restartMs });
    clock.after(restartMs, async () => {
      if (!this.isOver(worker) && (await this.begin(worker)) !== null) log(`${what} restarted`, who);
    });
  }

  /** Workers that are stopping ship to the keeper until their end. */
  private isOver({ number }: WorkerProcess): boolean {
    return number === KEEPER ? this.drained : this.stopping;
  }
}

/** Workers ended before they served. Each has logged why; this process has nothing to add. */
export class WorkersEnded extends Error {
  override name = "WorkersEnded";
}

export interface SupervisorOptions {
  readonly workers: number;
  /** The store is SQLite, and needs a process that keeps it. */
  readonly isKept: boolean;
  /** Begins a gateway. */
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly hostname: string;
  /** 0 picks a free one. */
  readonly port: number;
  readonly dataFolder: string;
  /** Where workers reach each other; null where there is no place for that. */
  readonly socketFolder: string | null;
  readonly clock: Clock;
  readonly log: Log;
  /** Workers have started and may be getting requests. The start goes on, and may be overtaken by a stop. */
  readonly onListening?: (stop: () => Promise<void>) => void;
}

function workerProcess(number: number): WorkerProcess {
  const questions: WorkerProcess["questions"] = new Questions((question) => send(worker, question));
  const worker: WorkerProcess = { number, failures: 0, serving: false, questions };
  return worker;
}

interface WorkerProcess {
  /** From 1, or `KEEPER`. */
  readonly number: number;
  /** Undefined between two processes. */
  child?: Bun.Subprocess<"ignore", "pipe", "inherit"> | undefined;
  serving: boolean;
  /** It served before, in another process. */
  isAgain?: true;
  /** To its present process. */
  readonly questions: Questions<WorkerQueries>;
  /** How often in a row it ended soon after its start. */
  failures: number;
}

function send({ child }: WorkerProcess, message: ToWorker): void {
  try {
    child?.send(message);
  } catch {
    // It is ending, and its exit says so.
  }
}

const STEADY_MS = 10_000;
const FIRST_RESTART_MS = 50;
const LAST_RESTART_MS = 5_000;

/**
 * Workers share the port with each other, and would share it with a stranger too. So this process first takes
 * it exclusively. One that the kernel picked is kept until the workers have it; nobody knows it yet.
 */
function claimPort(hostname: string, requestedPort: number): { readonly port: number; release(): void } {
  const port = freePort(hostname, requestedPort);
  if (requestedPort !== 0) return { port, release() {} };
  const kept = Bun.serve({
    hostname,
    port,
    reusePort: true,
    fetch: () => new Response(null, { status: 503 }),
  });
  return { port, release: () => void kept.stop(true) };
}

function freePort(hostname: string, requestedPort: number): number {
  try {
    const alone = Bun.listen({ hostname, port: requestedPort, socket: { data() {} } });
    const { port } = alone;
    alone.stop(true);
    return port;
  } catch (error) {
    throw cannotListen({ hostname, port: requestedPort }, error);
  }
}

/** What the worker prints until it serves; afterwards its output is only drained. */
async function announced(stdout: ReadableStream<Uint8Array>): Promise<string | null> {
  const reader = stdout.getReader();
  const decoder = new TextDecoder();
  let text = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return null;
    text += decoder.decode(value, { stream: true });
    if (!text.includes("listening on ") || !text.endsWith("\n")) continue;
    void drain(reader);
    return text;
  }
}

async function drain(reader: { read(): Promise<{ done: boolean }> }): Promise<void> {
  while (!(await reader.read()).done);
}
