import { connect } from "node:net";
import type { SurfaceName } from "../../catalog/catalog.ts";
import type { Sink, StreamedAnswer, WholeAnswer } from "../../generation/answer.ts";
import {
  KEPT_MS,
  type KeyedRequest,
  type PassedAnswer,
  type RepeatPeers,
  tooManyOpen,
} from "../../generation/idempotency.ts";
import { Refusal, refuse } from "../../units/errors/refusal.ts";
import {
  type ConnectionDeps,
  type PassedReply,
  REPEAT_PROTOCOL,
  RepeatConnection,
  type RepeatGreeting,
} from "./repeat-connection.ts";
import type { WorkerIdentity } from "./worker-identity.ts";

/**
 * The worker that a request's `Idempotency-Key` names is its owner and answers it, whichever worker the
 * client has reached: that one passes the request on and relays the answer. For a key, every worker has all of them in
 * the same order, so that where the owner is not there, they turn to the same next one, and in the end to themselves.
 */
export class RepeatOwners implements RepeatPeers {
  private readonly lines: readonly OwnerLine[];
  private passed = 0;
  private passedUnpaid = 0;
  /** On the clock's `elapsedMs`. Until then, others may keep what they answered in this one's place. */
  private readonly missedUntilMs: number;

  constructor(
    private readonly identity: WorkerIdentity,
    private readonly deps: RepeatOwnersDeps,
  ) {
    const most = Math.max(1, Math.floor(BACKLOG / identity.workers));
    this.lines = Array.from(
      { length: identity.workers },
      (_, at) => new OwnerLine(identity.socketOf(at + 1), most, deps),
    );
    this.missedUntilMs = identity.isAgain ? deps.clock.elapsedMs() + KEPT_MS : Number.NEGATIVE_INFINITY;
  }

  async answer(request: KeyedRequest): PassedAnswer {
    return (await this.tryWorkers(this.workers(request).before, request, false)) ?? this.kept(request);
  }

  async kept(request: KeyedRequest): PassedAnswer {
    if (this.deps.clock.elapsedMs() >= this.missedUntilMs) return null;
    return this.tryWorkers(this.workers(request).behind, request, true);
  }

  private workers({ id }: KeyedRequest) {
    const order = inOrder(id, this.identity.workers);
    const own = order.indexOf(this.identity.number);
    return { before: order.slice(0, own), behind: order.slice(own + 1) };
  }

  private async tryWorkers(workers: readonly number[], request: KeyedRequest, ifKept: boolean): PassedAnswer {
    const { pays } = request;
    for (const worker of workers) {
      if (this.passed >= MAX_PASSED || (!pays && this.passedUnpaid >= MAX_UNPAID)) return tooManyOpen();
      this.count(pays, 1);
      const connection = await this.lines[worker - 1]!.open(() => this.count(pays, -1));
      const answer = connection === null ? null : await this.passOn(request, ifKept, connection);
      if (request.call.signal.aborted) return NOBODY_READS;
      if (answer !== null) return answer;
    }
    return null;
  }

  /** Null where the other worker says that it did nothing. */
  private async passOn(
    { balance, surface, call }: KeyedRequest,
    ifKept: boolean,
    connection: RepeatConnection,
  ): PassedAnswer {
    const { secret, body, signal } = call;
    const leave = () => connection.destroy();
    signal.addEventListener("abort", leave, { once: true });
    if (signal.aborted) leave();
    const [headers, blocks] = [[...call.headers], call.blocks()];
    connection.sendMessage({ surface, secret, balance, headers, blocks, ifKept, bytes: body.length });
    connection.send(body);
    const silenceMs = this.deps.silenceMs();
    const reply = await connection.readMessage<PassedReply>(silenceMs);
    if (reply?.kind === "stream") {
      const { status, headers } = reply;
      const brokenOff = () => this.deps.brokenOff(surface, streamLost());
      return new PassedStream(status, headers, { connection, silenceMs, brokenOff });
    }
    const whole = reply?.kind === "whole" ? await connection.frame(silenceMs) : null;
    leave();
    switch (reply?.kind) {
      case "absent":
        return null;
      case "refused":
        return new Refusal(reply.refusal.code, reply.refusal.message, reply.refusal.details);
      case "whole":
        return whole === null ? ownerLost() : { ...reply, kind: "whole", body: whole };
      default:
        // What it may have kept has gone with it.
        return ifKept ? null : ownerLost();
    }
  }

  private count(pays: boolean, change: number): void {
    this.passed += change;
    if (!pays) this.passedUnpaid += change;
  }
}

/** The workers' numbers: first the owner of what has this id, then those that answer where the ones before are not there. */
export function inOrder(id: string, workers: number): readonly number[] {
  const numbers = Array.from({ length: workers }, (_, at) => at + 1);
  const ranks = numbers.map((worker) => Bun.hash.xxHash32(id, worker));
  return numbers.sort((one, other) => ranks[one - 1]! - ranks[other - 1]!);
}

export interface RepeatOwnersDeps extends ConnectionDeps {
  /** Longer than any answer takes. */
  silenceMs(): number;
  /** The end of a stream of this language that broke off. */
  brokenOff(surface: SurfaceName, why: Refusal): Uint8Array;
}

/** How one other worker is reached. */
class OwnerLine {
  private dialling = 0;
  private readonly waiting: (() => void)[] = [];
  /** On the clock's `elapsedMs`: it is there, but hangs. */
  private hangsUntilMs = 0;

  constructor(
    private readonly path: string,
    /** A dial beyond the kernel's queue is refused as if nobody listened. */
    private readonly mostDialling: number,
    private readonly deps: ConnectionDeps,
  ) {}

  /** Null where nobody answers. */
  async open(closed: () => void): Promise<RepeatConnection | null> {
    if (this.dialling >= this.mostDialling) await new Promise<void>((begin) => this.waiting.push(begin));
    else this.dialling += 1;
    try {
      return await this.dial(closed);
    } finally {
      const next = this.waiting.shift();
      if (next === undefined) this.dialling -= 1;
      else next();
    }
  }

  private async dial(closed: () => void): Promise<RepeatConnection | null> {
    const { clock } = this.deps;
    if (clock.elapsedMs() < this.hangsUntilMs) {
      closed();
      return null;
    }
    const connection = new RepeatConnection(connect(this.path), this.deps, closed);
    const greeting = await connection.readMessage<RepeatGreeting>(TIMEOUT_MS);
    if (greeting?.protocol === REPEAT_PROTOCOL) return connection;
    if (connection.isSilent) this.hangsUntilMs = clock.elapsedMs() + TIMEOUT_MS;
    connection.destroy();
    return null;
  }
}

/** An owner's stream on its way to a client. */
class PassedStream implements StreamedAnswer {
  readonly kind = "stream";

  constructor(
    readonly status: number,
    readonly headers: StreamedAnswer["headers"],
    private readonly from: {
      readonly connection: RepeatConnection;
      readonly silenceMs: number;
      brokenOff(): Uint8Array;
    },
  ) {}

  async run(sink: Sink): Promise<void> {
    const { connection, silenceMs, brokenOff } = this.from;
    for (;;) {
      const bytes = await connection.frame(silenceMs);
      if (bytes?.length === 0) break;
      const taken = sink.write(bytes ?? brokenOff());
      if (bytes === null || !(taken === true || (await taken))) break;
    }
    connection.destroy();
    sink.close();
  }
}

/** The client has left. */
const NOBODY_READS: WholeAnswer = { kind: "whole", status: 499, headers: {}, body: new Uint8Array(0) };

const ownerLost = (): Refusal =>
  refuse(
    "internal_error",
    "The gateway's process that answers this `Idempotency-Key` ended before its answer was here, and what it kept is forgotten. Send the request again, which is then a new one.",
  );

const streamLost = (): Refusal =>
  refuse(
    "internal_error",
    "The gateway's process that wrote this answer ended, and what it kept is forgotten. What it had delivered is charged, as the receipt will tell. Send the request again, which is then a new one.",
  );

/** As long as a worker's lease: one that hangs for longer admits nothing before it has renewed that. */
const TIMEOUT_MS = 10_000;
/** Connections that the oldest of kernels lets wait for a process. */
const BACKLOG = 128;
/** At a time, by one worker: each takes an open file here and one there. */
const MAX_PASSED = 10_000;
const MAX_UNPAID = 1_000;
