/**
 * A load generator on raw sockets: it only looks for the end of each answer, so that it is not what is
 * measured. Its own ceiling, against the bare host, is part of every report.
 */
import type { Socket } from "bun";
import { ascending } from "./figures.ts";
import type { Measured } from "./processes.ts";

/** Something that answers `/v1/chat/completions`. */
export interface Target {
  readonly port: number;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
}

export interface Load {
  /** Several are sent in turn. */
  readonly body: string | readonly string[];
  readonly connections: number;
  /** Whichever ends first. */
  readonly requests?: number;
  readonly seconds?: number;
  /** Over all connections; without it each sends its next request once the last was answered. */
  readonly perSecond?: number;
  /** Says that a longer body is coming, and sends none: what a flood of too large requests looks like. */
  readonly claimedBytes?: number;
  /** How long an answer may take. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

export interface Timings {
  /** Answers with a 2xx. */
  readonly count: number;
  readonly failures: number;
  /** How often each status was given; 0 is a connection that ended without an answer. */
  readonly statuses: Readonly<Record<number, number>>;
  readonly seconds: number;
  /** Sorted, ms, of the answers with a 2xx. */
  readonly firstByteMs: readonly number[];
  readonly totalMs: readonly number[];
  /** Between one arrival and the next within an answer. */
  readonly gapMs: readonly number[];
}

/** Keep-alive connections; one that the other side closes is opened again. */
export function load(target: Target, plan: Load): Promise<Timings> {
  const run = new Run(target, plan);
  return run.finished;
}

class Run {
  readonly finished: Promise<Timings>;
  readonly #target: Target;
  readonly #plan: Load;
  readonly #requests: readonly Uint8Array[];
  readonly #startedMs = performance.now();
  readonly #firstByteMs: number[] = [];
  readonly #totalMs: number[] = [];
  readonly #gapMs: number[] = [];
  readonly #statuses: Record<number, number> = {};
  /** Waiting for the pace to let them send. */
  readonly #idle: Socket<Exchange>[] = [];
  #sent = 0;
  #open = 0;
  #ticker: Timer | null = null;
  #resolve!: (timings: Timings) => void;
  #reject!: (error: Error) => void;

  constructor(target: Target, plan: Load) {
    this.#target = target;
    this.#plan = plan;
    const bodies = typeof plan.body === "string" ? [plan.body] : plan.body;
    this.#requests = bodies.map((body) => requestBytes(target, body, plan.claimedBytes));
    this.finished = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    if (plan.perSecond !== undefined) this.#ticker = setInterval(() => this.#sendDue(), 1);
    for (let index = 0; index < Math.min(plan.connections, plan.requests ?? plan.connections); index++)
      this.#connect();
  }

  #connect(): void {
    this.#open += 1;
    Bun.connect<Exchange>({
      hostname: "127.0.0.1",
      port: this.#target.port,
      socket: {
        open: (socket) => {
          socket.data = idleExchange();
          this.#next(socket);
        },
        data: (socket, bytes) => this.#take(socket, bytes),
        drain: (socket) => this.#write(socket),
        close: (socket) => this.#closed(socket),
        timeout: (socket) => {
          this.#fail(`no answer in ${this.#plan.timeoutMs ?? TIMEOUT_MS} ms`);
          socket.terminate();
        },
        error: (_socket, error) => this.#reject(error),
      },
    }).catch((error) => this.#reject(error));
  }

  get #over(): boolean {
    const { requests = Number.POSITIVE_INFINITY, seconds = Number.POSITIVE_INFINITY, signal } = this.#plan;
    return (
      this.#sent >= requests ||
      performance.now() - this.#startedMs >= seconds * 1_000 ||
      (signal?.aborted ?? false)
    );
  }

  #next(socket: Socket<Exchange>): void {
    if (this.#over) socket.end();
    else if (this.#plan.perSecond === undefined) this.#send(socket);
    else this.#idle.push(socket);
  }

  #sendDue(): void {
    if (this.#over) {
      for (const socket of this.#idle.splice(0)) socket.end();
      return;
    }
    const due = ((performance.now() - this.#startedMs) / 1_000) * this.#plan.perSecond!;
    while (this.#sent < due && this.#idle.length > 0) this.#send(this.#idle.shift()!);
  }

  #send(socket: Socket<Exchange>): void {
    const request = this.#requests[this.#sent % this.#requests.length]!;
    this.#sent += 1;
    const { data } = socket;
    data.sentMs = performance.now();
    data.lastMs = data.received = 0;
    data.tail = "";
    socket.timeout(Math.ceil((this.#plan.timeoutMs ?? TIMEOUT_MS) / 1_000));
    data.unsent = request;
    this.#write(socket);
  }

  #write(socket: Socket<Exchange>): void {
    const { data } = socket;
    if (data.unsent.length === 0) return;
    const wrote = socket.write(data.unsent);
    data.unsent = data.unsent.subarray(Math.max(0, wrote));
  }

  #take(socket: Socket<Exchange>, bytes: Buffer): void {
    const { data } = socket;
    const nowMs = performance.now();
    if (data.lastMs === 0) readHead(data, bytes, nowMs);
    else this.#gapMs.push(nowMs - data.lastMs);
    data.lastMs = nowMs;
    if (!whole(data, bytes)) return;
    this.#statuses[data.status] = (this.#statuses[data.status] ?? 0) + 1;
    if (data.status >= 200 && data.status < 300) {
      this.#firstByteMs.push(data.firstMs - data.sentMs);
      this.#totalMs.push(nowMs - data.sentMs);
    }
    data.sentMs = 0;
    if (data.closes) socket.end();
    else this.#next(socket);
  }

  #closed({ data }: Socket<Exchange>): void {
    this.#open -= 1;
    if (data !== undefined && data.sentMs !== 0) this.#statuses[0] = (this.#statuses[0] ?? 0) + 1;
    if (!this.#over) this.#connect();
    else if (this.#open === 0) this.#finish();
  }

  #fail(why: string): void {
    if (this.#ticker !== null) clearInterval(this.#ticker);
    this.#reject(new Error(`port ${this.#target.port}: ${why}`));
  }

  #finish(): void {
    if (this.#ticker !== null) clearInterval(this.#ticker);
    const answered = Object.values(this.#statuses).reduce((sum, times) => sum + times, 0);
    this.#resolve({
      count: this.#totalMs.length,
      failures: answered - this.#totalMs.length,
      statuses: this.#statuses,
      seconds: (performance.now() - this.#startedMs) / 1_000,
      firstByteMs: ascending(this.#firstByteMs),
      totalMs: ascending(this.#totalMs),
      gapMs: ascending(this.#gapMs),
    });
  }
}

const TIMEOUT_MS = 60_000;

interface Exchange {
  unsent: Uint8Array;
  /** 0 between two exchanges. */
  sentMs: number;
  firstMs: number;
  /** Time of the last arrival; 0 before the first. */
  lastMs: number;
  status: number;
  closes: boolean;
  /** Bytes of the whole answer, head included; -1 when it is chunked. */
  length: number;
  received: number;
  /** Enough of the end to recognise the last chunk. */
  tail: string;
}

const idleExchange = (): Exchange => ({
  unsent: new Uint8Array(),
  sentMs: 0,
  firstMs: 0,
  lastMs: 0,
  status: 0,
  closes: false,
  length: -1,
  received: 0,
  tail: "",
});

/** Every server here sends its head in one piece. */
function readHead(exchange: Exchange, bytes: Buffer, nowMs: number): void {
  const text = bytes.toString("latin1", 0, Math.min(bytes.length, 4_096));
  const end = text.indexOf("\r\n\r\n");
  const head = text.slice(0, end);
  const length = /content-length: *(\d+)/i.exec(head);
  exchange.firstMs = nowMs;
  exchange.status = Number(text.slice(9, 12));
  exchange.closes = /connection: *close/i.test(head);
  exchange.length = length === null ? -1 : end + 4 + Number(length[1]);
}

function whole(exchange: Exchange, bytes: Buffer): boolean {
  exchange.received += bytes.length;
  if (exchange.length >= 0) return exchange.received >= exchange.length;
  exchange.tail = (exchange.tail + bytes.toString("latin1", Math.max(0, bytes.length - 8))).slice(-8);
  return exchange.tail.endsWith("0\r\n\r\n");
}

export function requestBytes({ port, path, headers }: Target, body: string, claimedBytes = 0): Uint8Array {
  const fields = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  const head = `POST ${path} HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\n${fields.join("")}content-type: application/json\r\n`;
  const length = claimedBytes || Buffer.byteLength(body);
  return new TextEncoder().encode(`${head}content-length: ${length}\r\n\r\n${claimedBytes > 0 ? "" : body}`);
}

/** The same, where every answer has to be a 2xx. */
export async function served(target: Target, plan: Load): Promise<Timings> {
  const timings = await load(target, plan);
  if (timings.failures > 0) throw new Error(`not all were answered: ${JSON.stringify(timings.statuses)}`);
  return timings;
}

/** What a process used its processors for meanwhile, µs. */
export async function cpuOf<T>(
  { cpuUs }: Pick<Measured, "cpuUs">,
  run: () => Promise<T>,
): Promise<{ readonly result: T; readonly us: number }> {
  const before = cpuUs();
  const result = await run();
  return { result, us: cpuUs() - before };
}
