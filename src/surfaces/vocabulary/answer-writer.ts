import type { ErrorObject } from "../../units/errors/refusal.ts";
import { bytesOf, NO_BYTES } from "../json/bytes.ts";
import type { Billed, Usage } from "../surface.ts";
import type { AnswerEvents, Citation, OpenBlock, StopReason } from "./answer-events.ts";
import type { Seal } from "./conversation.ts";

/** Writes the frames of a streamed answer in a client's language. */
export abstract class AnswerWriter implements AnswerEvents {
  private out = "";

  /** Frames since the last call. */
  take(): Uint8Array {
    const bytes = bytesOf(this.out);
    this.out = "";
    return bytes;
  }

  /** Writes the rest, except the frames with the bill. */
  finish(): void {}
  /** The frames from there to the end mark, which are sent after settlement. */
  abstract last(bill: Billed): Uint8Array;
  /** Frames that end the stream with an error; no end mark follows them. */
  abstract fail(error: ErrorObject): Uint8Array;

  /** A sign of life: while a host thinks in silence, proxies on the way to the client must not give up. */
  ping(): void {
    this.out += ": ping\n\n";
  }

  abstract start(id: string | null, usage: Usage | null): void;
  abstract open(block: OpenBlock): void;
  abstract delta(text: string, logprobs?: readonly unknown[]): void;
  /** Languages that have no such citations leave them out. */
  cite(_citation: Citation): void {}
  abstract close(seal: Seal | null): void;
  /** Clients get the bill's, at the end. */
  usage(_usage: Usage): void {}
  abstract stop(reason: StopReason, sequence: string | null): void;

  protected frame(text: string): void {
    this.out += text;
  }

  protected data(json: string): void {
    this.out += `data: ${json}\n\n`;
  }

  protected event(name: string, json: string): void {
    this.out += `event: ${name}\ndata: ${json}\n\n`;
  }
}

/** Writes no frames: the answer is put together, for a client that wants it whole. */
export class CollectedAnswer extends AnswerWriter {
  id: string | null = null;
  readonly blocks: AnswerBlock[] = [];
  reason: StopReason = "end";
  sequence: string | null = null;

  start(id: string | null): void {
    this.id = id;
  }

  open(block: OpenBlock): void {
    this.blocks.push(beginBlock(block));
  }

  delta(text: string, logprobs: readonly unknown[] = []): void {
    const last = this.blocks.at(-1)!;
    last.text += text;
    for (const one of logprobs) last.logprobs.push(one);
  }

  override cite(citation: Citation): void {
    this.blocks.at(-1)!.citations.push(citation);
  }

  close(seal: Seal | null): void {
    this.blocks.at(-1)!.seal = seal;
  }

  stop(reason: StopReason, sequence: string | null): void {
    this.reason = reason;
    this.sequence = sequence;
  }

  override ping(): void {}

  last(): Uint8Array {
    return NO_BYTES;
  }

  fail(): Uint8Array {
    return NO_BYTES;
  }
}

export interface AnswerBlock {
  readonly block: OpenBlock;
  text: string;
  logprobs: unknown[];
  readonly citations: Citation[];
  seal: Seal | null;
}

export const beginBlock = (block: OpenBlock): AnswerBlock => ({
  block,
  text: "",
  logprobs: [],
  citations: [],
  seal: null,
});

/** An id of this language that names the host's answer for which it stands. */
export function answerId(prefix: string, hostId: string | null): string {
  const tail = (hostId ?? "").replace(/^(chatcmpl-|msg_|resp_)/, "").replace(/[^a-zA-Z0-9_-]/g, "");
  return `${prefix}${tail === "" ? "gateway" : tail.slice(0, MAX_TAIL)}`;
}

/** OpenAI takes ids of up to 64 characters back; items of an answer add theirs. */
const MAX_TAIL = 48;
