import type { ErrorObject } from "../errors/refusal.ts";
import { estimateTokens } from "../tokens/estimate.ts";
import { fault } from "./host-error.ts";
import { parseObject } from "./json.ts";
import { EventCutter, type EventFields, eventEnd, readEvent } from "./sse.ts";
import type { HostError, Reply, Usage, WholeJudge } from "./surface.ts";

/**
 * What the judges of the three languages share, where the host speaks the client's own: cutting events, giving unchanged
 * ones on without a copy, and holding the end mark back. A language says of each event what it means.
 */
export abstract class PassingJudge implements WholeJudge {
  tokenSeen = false;
  terminal: Uint8Array | null = null;
  fault: HostError | null = null;
  usage: Usage | null = null;
  private readonly cutter = new EventCutter();
  private counted = 0;

  constructor(
    protected readonly publicModel: string,
    /** Puts the answer together for a client that wants it whole; null where it goes on as it comes. */
    private readonly collector: Collector | null,
  ) {}

  get countedTokens(): number {
    return Math.ceil(this.counted);
  }

  push(chunk: Uint8Array): Uint8Array {
    if (this.over) return NOTHING;
    const bytes = this.cutter.push(chunk);
    if (this.cutter.unfinished > MAX_EVENT_BYTES) {
      this.breakOff(`an event is larger than ${MAX_EVENT_BYTES} bytes`);
    }
    return this.read(bytes);
  }

  end(): Uint8Array {
    if (this.over) return NOTHING;
    // Hosts that leave out the last blank line mean their last event all the same.
    const rest = this.cutter.rest();
    const out = rest.length > 0 ? this.read(Buffer.concat([rest, BLANK_LINE])) : NOTHING;
    if (!this.over) this.closed();
    return out;
  }

  abstract fail(error: ErrorObject): Uint8Array;

  reply(): Reply {
    const whole = { ...this.collector!.whole(), model: this.publicModel };
    const { usage, countedTokens } = this;
    return { kind: "reply", body: Buffer.from(JSON.stringify(whole)), usage, countedTokens };
  }

  /** The event as the client gets it: itself (`SAME`), changed, or withheld (null). Facts go to the fields. */
  protected abstract judge(event: EventFields, bytes: Buffer): Buffer | typeof SAME | null;

  /** The host's body ended properly, but without its end mark. */
  protected closed(): void {
    this.breakOff("the stream ended without its end mark");
  }

  /** Text of any kind that the model wrote: it counts, and it is a token. */
  protected wrote(text: unknown): void {
    if (typeof text !== "string" || text === "") return;
    this.tokenSeen = true;
    this.counted += estimateTokens(text);
  }

  /** The event's data, which a collector is told of too. */
  protected dataOf(event: EventFields): Record<string, unknown> | null {
    const data = dataObject(event);
    if (data !== null) this.collector?.add(data);
    return data;
  }

  protected breakOff(message: string): void {
    this.fault = fault(message);
  }

  protected get over(): boolean {
    return this.terminal !== null || this.fault !== null;
  }

  private read(bytes: Buffer): Uint8Array {
    const pieces: Uint8Array[] = [];
    let unchangedFrom = 0;
    let at = 0;
    while (at < bytes.length && !this.over) {
      const end = eventEnd(bytes, at);
      const event = bytes.subarray(at, end);
      const given = this.judge(readEvent(event, 0, event.length), event);
      if (this.collector !== null) {
        unchangedFrom = end;
      } else if (given !== SAME || this.over) {
        if (unchangedFrom < at) pieces.push(bytes.subarray(unchangedFrom, at));
        if (given !== null && given !== SAME) pieces.push(given);
        unchangedFrom = end;
      }
      at = end;
    }
    if (!this.over && unchangedFrom < bytes.length) pieces.push(bytes.subarray(unchangedFrom));
    return pieces.length === 0 ? NOTHING : pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces);
  }
}

/** Puts an answer together from the objects of its events. */
export interface Collector {
  add(data: Record<string, unknown>): void;
  /** The whole answer, as a host would have given it unstreamed. */
  whole(): Record<string, unknown>;
}

/** The event is given on as it came. */
export const SAME = Symbol("same");

/** Larger than any image that a host sends inside an event. */
export const MAX_EVENT_BYTES = 16 * 1024 * 1024;

export const NOTHING = new Uint8Array();
export const BLANK_LINE = Buffer.from("\n\n");

/** The event's data as an object; null where it is something else. */
export const dataObject = ({ data }: EventFields): Record<string, unknown> | null =>
  data === null ? null : parseObject(data);

export const encodeEvent = (name: string | null, data: unknown): Buffer =>
  Buffer.from(`${name === null ? "" : `event: ${name}\n`}data: ${JSON.stringify(data)}\n\n`);
