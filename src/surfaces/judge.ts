import type { ErrorObject } from "../errors/refusal.ts";
import { estimateJsonText, NO_JSON_TEXT, tokensOf } from "../tokens/estimate.ts";
import { NO_BYTES } from "./bytes.ts";
import { Edits } from "./edits.ts";
import { fault, NO_EVENT } from "./host-error.ts";
import { parseObject } from "./json.ts";
import { JsonCursor } from "./json-cursor.ts";
import { Likeness } from "./likeness.ts";
import { type CurrentEvent, EVENT, EventCutter, eventEnd } from "./sse.ts";
import type { HostError, Reply, Usage, WholeJudge } from "./surface.ts";

/**
 * What the judges of the three languages share when the host speaks the client's own: they cut the stream
 * into events, pass unchanged ones on without a copy, and hold the end mark back. Each language says what an
 * event means.
 */
export abstract class PassingJudge implements WholeJudge {
  tokenSeen = false;
  terminal: Uint8Array | null = null;
  fault: HostError | null = null;
  usage: Usage | null = null;
  stoppedShort = false;
  /** The changes for the client in what the host sent. */
  protected readonly edits = EDITS;
  protected readonly cursor = CURSOR;
  /** The model's name for the client, as JSON. */
  protected readonly modelJson: Uint8Array;
  private readonly cutter = new EventCutter();
  private readonly likeness = new Likeness();
  /** Of the event's texts that were counted where they stand: how many, and the last one's place. */
  private texts = 0;
  private textStart = 0;
  private textEnd = 0;
  private counted = 0;

  constructor(
    protected readonly publicModel: string,
    /** Assembles the answer for a client that wants it whole; null when it is passed on as it comes. */
    protected readonly collector: Collector | null,
  ) {
    this.modelJson = Buffer.from(JSON.stringify(publicModel));
  }

  get countedTokens(): number {
    return Math.ceil(this.counted);
  }

  push(chunk: Uint8Array): Uint8Array {
    if (this.over) return NO_BYTES;
    const bytes = this.cutter.push(chunk);
    if (this.cutter.unfinished > MAX_EVENT_BYTES) {
      this.breakOff(`an event is larger than ${MAX_EVENT_BYTES} bytes`);
    }
    return this.read(bytes);
  }

  end(): Uint8Array {
    if (this.over) return NO_BYTES;
    // Hosts that leave out the last blank line mean their last event all the same.
    const rest = this.cutter.rest();
    const out = rest.length > 0 ? this.read(Buffer.concat([rest, BLANK_LINE])) : NO_BYTES;
    if (!this.over) this.closed();
    return out;
  }

  abstract fail(error: ErrorObject): Uint8Array;

  reply(): Reply {
    const whole = { ...this.collector!.whole(), model: this.publicModel };
    const { usage, countedTokens } = this;
    return { kind: "reply", body: Buffer.from(JSON.stringify(whole)), usage, countedTokens };
  }

  /**
   * Interprets an event: sets the fields, and adds to `edits` whatever the client must not get as it came.
   * The event that ends the stream is withheld whole.
   */
  protected abstract judge(event: CurrentEvent): void;

  /**
   * The same of an event with text, as nearly all are, which is read where it stands; false when it is
   * another. What it means is in its bytes alone: the next that differs from it in one text that counts is
   * not read any more.
   */
  protected abstract judgeText(event: CurrentEvent): boolean;

  /** Called when the host's body ended properly but without its end mark. */
  protected closed(): void {
    this.breakOff("the stream ended without its end mark");
  }

  /** Counts text of any kind that the model wrote, and notes that a token has arrived. */
  protected wrote(text: unknown): void {
    this.wroteTokens(tokensOf(text));
  }

  /** The same for text that was already counted in place. */
  protected wroteTokens(tokens: number): void {
    if (tokens === 0) return;
    this.tokenSeen = true;
    this.counted += tokens;
  }

  /** Tokens of the text at the cursor, which may be null. */
  protected tokensAtCursor({ bytes }: CurrentEvent): number {
    const { cursor } = this;
    const start = cursor.at + 1;
    if (!cursor.isText) {
      cursor.skipNull();
      return 0;
    }
    cursor.skip();
    this.texts += 1;
    this.textStart = start;
    this.textEnd = cursor.at - 1;
    const tokens = estimateJsonText(bytes, start, cursor.at - 1);
    if (tokens === NO_JSON_TEXT) cursor.giveUp();
    return tokens;
  }

  /** The event's data, which a collector is told of too. */
  protected dataOf(text: string | null): Record<string, unknown> | null {
    // A block of empty data is no event (WHATWG HTML, "Server-sent events").
    if (text === null || text.trim() === "") return null;
    const data = parseObject(text);
    if (data === null) {
      this.fault = NO_EVENT;
      return null;
    }
    this.mend(data);
    this.collector?.add(data);
    return data;
  }

  /** Corrects what this host does differently from its language, before anything else sees the event. */
  protected mend(_data: Record<string, unknown>): void {}

  /**
   * Passes the model's name in the event's member `outer`, which is the answer or its beginning; false where
   * it has none.
   */
  protected passModel(outer: string, { bytes, dataStart, dataEnd }: CurrentEvent): boolean {
    const { cursor } = this;
    cursor.begin(bytes, dataStart, dataEnd);
    if (!cursor.passMember(outer)) return false;
    cursor.begin(bytes, cursor.valueStart, cursor.at);
    return cursor.passMember("model");
  }

  protected rename(outer: string, event: CurrentEvent): void {
    const { cursor } = this;
    if (this.passModel(outer, event)) this.edits.replace(cursor.valueStart, cursor.at, this.modelJson);
  }

  /** What was learnt of events does not hold any more. */
  protected forgetLikeness(): void {
    this.likeness.forget();
  }

  protected breakOff(message: string): void {
    this.fault = fault(message);
  }

  protected get over(): boolean {
    return this.terminal !== null || this.fault !== null;
  }

  private read(bytes: Uint8Array): Uint8Array {
    const { edits, likeness } = this;
    const event = EVENT;
    let start = 0;
    // An exception may have left some.
    edits.forget();
    for (let at = 0; at < bytes.length && !this.over; ) {
      start = at;
      at = likeness.pass(bytes, start, edits);
      if (at !== -1) {
        this.wroteTokens(likeness.tokens);
        continue;
      }
      at = eventEnd(bytes, start);
      event.moveTo(bytes, start, at);
      const first = edits.made;
      this.texts = 0;
      if (this.collector !== null || !this.judgeText(event)) this.judge(event);
      else if (this.texts === 1) likeness.learn(event, this.textStart, this.textEnd, edits, first);
    }
    if (this.over) edits.leaveOut(start, bytes.length);
    if (this.collector === null) return edits.applyTo(bytes);
    edits.forget();
    return NO_BYTES;
  }
}

/**
 * One of each for all streams: what comes is read without a wait, and nothing of them is used between two
 * reads. Thousands of streams that had their own would fetch them into the processor's caches for each event.
 */
const EDITS = new Edits();
const CURSOR = new JsonCursor();

/** Puts an answer together from the objects of its events. */
export interface Collector {
  add(data: Record<string, unknown>): void;
  /** The whole answer, as a host would have given it unstreamed. */
  whole(): Record<string, unknown>;
}

/** Larger than any image that a host sends inside an event. */
export const MAX_EVENT_BYTES = 16 * 1024 * 1024;

export const BLANK_LINE = Buffer.from("\n\n");

export const encodeEvent = (name: string | null, data: unknown): Buffer =>
  Buffer.from(`${name === null ? "" : `event: ${name}\n`}data: ${JSON.stringify(data)}\n\n`);
