import type { GenerationAnswer, Sink, StreamedAnswer } from "../generation/answer.ts";

/**
 * An answer as a response. Streams are Bun's direct ones: each write goes to the socket at once, and while
 * the client does not read, `write` returns a promise that settles when it has, or when it is gone. Measured
 * against pull streams and TransformStream: the cheapest for each event, and the only one whose writes say
 * that the client left.
 */
export function answerResponse(answer: GenerationAnswer, turns: Turns): Response {
  const { status, headers } = answer;
  const body = answer.kind === "whole" ? (answer.body as Uint8Array<ArrayBuffer>) : streamOf(answer, turns);
  return new Response(body, { status, headers });
}

/** Whose turn it is to go on, which decides whether the client's silence is limited. */
export interface Turns {
  gatewaysTurn(): void;
  clientsTurn(): void;
}

const streamOf = (answer: StreamedAnswer, turns: Turns): ReadableStream =>
  directStream({
    type: "direct",
    pull(controller) {
      turns.gatewaysTurn();
      return answer.run(new ClientSink(controller, turns));
    },
  });

class ClientSink implements Sink {
  private closed = false;

  constructor(
    private readonly controller: DirectController,
    private readonly turns: Turns,
  ) {}

  write(bytes: Uint8Array): boolean | Promise<boolean> {
    if (this.closed) return false;
    if (bytes.length === 0) return true;
    const taken = this.controller.write(bytes);
    if (typeof taken !== "number") return this.awaitTaken(taken);
    if (taken === 0) return false;
    return this.flush();
  }

  close(): void {
    if (this.closed) return;
    this.closed = true;
    this.turns.clientsTurn();
    this.controller.end();
  }

  private async awaitTaken(taken: Promise<number>): Promise<boolean> {
    return (await this.untilTaken(taken)) > 0 && this.flush();
  }

  private flush(): boolean | Promise<boolean> {
    const flushed = this.controller.flush();
    return typeof flushed === "number" ? true : this.untilTaken(flushed).then(() => true);
  }

  private async untilTaken(taken: Promise<number>): Promise<number> {
    this.turns.clientsTurn();
    const count = await taken;
    this.turns.gatewaysTurn();
    return count;
  }
}

/** Bun's own kind of stream: `pull` runs once and writes to the socket itself. */
export function directStream(source: DirectSource): ReadableStream {
  return new ReadableStream(source as unknown as UnderlyingDefaultSource);
}

interface DirectSource {
  readonly type: "direct";
  pull(controller: DirectController): Promise<void>;
}

interface DirectController {
  /** Bytes taken, 0 when the client is gone; a promise of that while its buffer is full. */
  write(bytes: Uint8Array): number | Promise<number>;
  flush(): number | Promise<number>;
  end(): void;
}
