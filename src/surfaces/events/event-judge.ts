import { AnswerText } from "../../tokens/answer-text.ts";
import { fault } from "../host-error.ts";
import { NO_BYTES } from "../json/bytes.ts";
import type { HostError, Usage } from "../surface.ts";
import { isDeclined } from "../usage.ts";
import { AnswerParts, TooManyParts } from "./answer-bounds.ts";
import { EventTemplate } from "./event-template.ts";
import { EventCutter } from "./sse.ts";

/** What is known by now of an answer that is on its way. */
export class AnswerFacts {
  readonly text = new AnswerText();
  tokenSeen = false;
  stoppedShort = false;
  /** The host ended the answer for policy reasons. */
  isFiltered = false;
  usage: Usage | null = null;
}

/**
 * What all judges share: they cut a host's stream into events, and read whole ones only, until the host has said its
 * end mark or shown that it failed.
 */
export abstract class EventJudge extends AnswerFacts {
  isComplete = false;
  fault: HostError | null = null;
  protected readonly template = new EventTemplate();
  /** How many parts the language's own state has; see AnswerParts. */
  protected readonly parts = new AnswerParts();
  private readonly cutter = new EventCutter();
  private received = 0;
  private mostBytes = Number.POSITIVE_INFINITY;
  /** The text's estimate when the host last said why the answer ended. */
  private stoppedAt = -1;

  get countedTokens(): number {
    return Math.ceil(this.text.estimate);
  }

  get hasStopped(): boolean {
    return this.stoppedAt === this.text.estimate;
  }

  get isDeclined(): boolean {
    return isDeclined(this.isFiltered, this.tokenSeen, this.usage);
  }

  limitTo(bytes: number): void {
    this.mostBytes = bytes;
  }

  push(chunk: Uint8Array): Uint8Array {
    if (this.over) return NO_BYTES;
    this.received += chunk.length;
    if (this.received > this.mostBytes) {
      this.breakOff(
        `the answer is larger than ${this.mostBytes} bytes, which is more than its ceiling can mean`,
      );
      return NO_BYTES;
    }
    const given = this.readBounded(this.cutter.push(chunk));
    if (this.cutter.unfinished > MAX_EVENT_BYTES && !this.over)
      this.breakOff(`an event is larger than ${MAX_EVENT_BYTES} bytes`);
    return given;
  }

  end(): Uint8Array {
    if (this.over) return NO_BYTES;
    // Hosts that leave out the last blank line mean their last event all the same.
    const rest = this.cutter.rest();
    const given = rest.length > 0 ? this.readBounded(Buffer.concat([rest, BLANK_LINE])) : NO_BYTES;
    return this.over ? given : Buffer.concat([given, this.closed()]);
  }

  private readBounded(events: Uint8Array): Uint8Array {
    try {
      return this.read(events);
    } catch (error) {
      if (!(error instanceof TooManyParts)) throw error;
      this.breakOff(error.message);
      return NO_BYTES;
    }
  }

  /** Reads events until the stream is over; returns what the client is given for them. */
  protected abstract read(events: Uint8Array): Uint8Array;

  /** The host's body ended properly but without its end mark; returns what the client is given. */
  protected abstract closed(): Uint8Array;

  /** The event at hand says why the answer ended. */
  protected stop(): void {
    this.stoppedAt = this.text.estimate;
  }

  protected breakOff(message: string): void {
    this.fault = fault(message);
  }

  protected get over(): boolean {
    return this.isComplete || this.fault !== null;
  }
}

/** Larger than any image that a host sends inside an event. */
const MAX_EVENT_BYTES = 16 * 1024 * 1024;

const BLANK_LINE = Buffer.from("\n\n");
