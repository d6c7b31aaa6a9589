import { createServer, type Socket } from "node:net";
import type { SurfaceName } from "../../catalog/catalog.ts";
import type { GenerationCall, Sink } from "../../generation/answer.ts";
import type { PassedAnswer } from "../../generation/idempotency.ts";
import { ROOM_WAIT_MS } from "../../http/body-room.ts";
import { SMALL_BYTES } from "../../http/prompt-body.ts";
import { listenPrivately } from "../../store/data-folder.ts";
import { ByteBudget } from "../../units/byte-budget.ts";
import type { Clock } from "../../units/clock.ts";
import { type Refusal, refuse, refused } from "../../units/errors/refusal.ts";
import {
  type ConnectionDeps,
  type PassedRequest,
  REPEAT_PROTOCOL,
  RepeatConnection,
} from "./repeat-connection.ts";

/**
 * Where other workers pass on the requests whose `Idempotency-Key` this one owns. Nobody else can open the socket, so what
 * they say of a client is believed. A request that was passed on is answered here and never passed on again.
 */
export class PassedRepeats {
  private readonly server = createServer((socket) => void this.serve(socket));
  private readonly open = new Set<RepeatConnection>();
  /** Apart from clients' bodies: workers that are full of what is for each other would wait for each other. */
  private readonly bodies: ByteBudget;

  constructor(
    bodyBytes: number,
    private readonly deps: PassedRepeatsDeps,
  ) {
    this.bodies = new ByteBudget(bodyBytes, deps.clock);
  }

  /** The path is bound once this returns. */
  async listen(path: string): Promise<void> {
    await listenPrivately(this.server, path);
    this.server.on("error", this.deps.onFault);
  }

  get areOpen(): boolean {
    return this.open.size > 0;
  }

  /** After a reload. */
  resize(bodyBytes: number): void {
    this.bodies.resize(bodyBytes);
  }

  stop(): void {
    this.server.close();
    for (const connection of this.open) connection.destroy();
  }

  private async serve(socket: Socket): Promise<void> {
    const left = new AbortController();
    const connection: RepeatConnection = new RepeatConnection(socket, this.deps, () => {
      this.open.delete(connection);
      left.abort();
    });
    this.open.add(connection);
    try {
      connection.sendMessage({ protocol: REPEAT_PROTOCOL });
      const request = await connection.readMessage<PassedRequest>(SENT_MS);
      const answer = request === null ? null : await this.answerTo(request, connection, left.signal);
      // From here on, nothing keeps the prompt.
      await sendAnswer(answer, connection);
      connection.end();
    } catch (error) {
      this.deps.onFault(error);
      connection.destroy();
    }
  }

  private async answerTo(
    request: PassedRequest,
    connection: RepeatConnection,
    signal: AbortSignal,
  ): PassedAnswer {
    const { balance, bytes, surface, ifKept } = request;
    const sender = { turn: balance, pays: true };
    const room =
      bytes > SMALL_BYTES ? await this.bodies.take(sender, bytes, ROOM_WAIT_MS, signal) : NONE_TAKEN;
    if (room === null) return noRoom();
    try {
      const body = await connection.frame(SENT_MS);
      return body === null ? null : await this.deps.answer(surface, callOf(request, body, signal), ifKept);
    } finally {
      room();
    }
  }
}

export interface PassedRepeatsDeps extends ConnectionDeps {
  readonly clock: Clock;
  /** Null where nothing was done. */
  answer(surface: SurfaceName, call: GenerationCall, ifKept: boolean): PassedAnswer;
  onFault(error: unknown): void;
}

const callOf = (
  { secret, headers, blocks }: PassedRequest,
  body: Uint8Array,
  signal: AbortSignal,
): GenerationCall => ({
  secret,
  headers: new Headers(headers as [string, string][]),
  body,
  blocks: () => blocks,
  // Unpaid requests are never forwarded.
  isUnpaid: false,
  signal,
});

async function sendAnswer(answer: Awaited<PassedAnswer>, connection: RepeatConnection): Promise<void> {
  if (answer === null) return void connection.sendMessage({ kind: "absent" });
  if (refused(answer)) {
    const { code, message, details } = answer;
    return void connection.sendMessage({ kind: "refused", refusal: { code, message, details } });
  }
  const { kind, status, headers } = answer;
  connection.sendMessage({ kind, status, headers });
  if (answer.kind === "stream") return answer.run(new PassedSink(connection));
  connection.send(answer.body);
}

class PassedSink implements Sink {
  constructor(private readonly connection: RepeatConnection) {}

  write(bytes: Uint8Array): boolean | Promise<boolean> {
    return bytes.length === 0 || this.connection.send(bytes);
  }

  close(): void {
    this.connection.send(NO_BYTES);
  }
}

const NO_BYTES = new Uint8Array(0);
const NONE_TAKEN = () => {};
/** For each part of a request, from a worker of this machine that has all of it. */
const SENT_MS = 30_000;
const RETRY_S = 5;

const noRoom = (): Refusal =>
  refuse(
    "model_unavailable",
    `The gateway holds as many large requests as it has memory for, and nothing was charged. Retry in ${RETRY_S} s.`,
    { retryAfterS: RETRY_S, shouldRetry: true },
  );
