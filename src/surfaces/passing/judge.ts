import { ALONE } from "../../tokens/answer-text.ts";
import type { ErrorObject } from "../../units/errors/refusal.ts";
import { EventJudge } from "../events/event-judge.ts";
import type { FoundText } from "../events/event-template.ts";
import { SOLE_TEXT, type TextEvents } from "../events/sole-text.ts";
import { type CurrentEvent, EVENT, eventEnd } from "../events/sse.ts";
import { ENDED_EARLY, NO_EVENT } from "../host-error.ts";
import { bytesOf, copyInto, NO_BYTES, replaceSpan, textOf } from "../json/bytes.ts";
import { Edits } from "../json/edits.ts";
import { type Json, parseObject } from "../json/json.ts";
import { JsonCursor } from "../json/json-cursor.ts";
import type { Billed, ReadReply, WholeJudge, Writers } from "../surface.ts";
import { billedJson, billedUsage, type WriteUsage } from "./billed.ts";

/**
 * What the judges of the three languages share when the host speaks the client's own: they pass unchanged events
 * on without a copy, and hold back the end mark and the last usage before it, which tells the bill. Each language
 * says what an event means.
 */
export abstract class PassingJudge extends EventJudge implements WholeJudge {
  /** What the client is sent last of all. */
  protected endMark = NO_BYTES;
  protected abstract readonly writeUsage: WriteUsage;
  protected abstract readonly texts: TextEvents;
  /** The member of the last event that is the answer; null where the event has the usage itself. */
  protected readonly within: string | null = null;
  /** The changes for the client in what the host sent. */
  protected readonly edits = EDITS;
  protected readonly cursor = CURSOR;
  /** The model's name for the client, as JSON. */
  protected modelJson: Uint8Array;
  readonly writers?: Writers | undefined;
  /** The event that may be the last with a usage, and what came behind it. */
  private tail: Uint8Array | null = null;
  /** The event at hand may be the last with a usage. */
  private reportsUsage = false;

  /** The event at hand, parsed; null where it is no object. */
  private data: Json | null = null;
  /** For a collected answer: the texts of same-shaped events. */
  private readonly buffered: DeltaBuffer | null;

  constructor(
    protected publicModel: string,
    /** Assembles the answer for a client that wants it whole; null when it is passed on as it comes. */
    protected readonly collector: Collector | null,
  ) {
    super();
    this.modelJson = bytesOf(JSON.stringify(publicModel));
    this.buffered = collector === null ? null : new DeltaBuffer();
  }

  last(bill: Billed): Uint8Array {
    return Buffer.concat([
      this.tail === null ? this.usageFrame(bill) : this.billed(this.tail, bill),
      this.endMark,
    ]);
  }

  fail(error: ErrorObject, bill: Billed | null): Uint8Array {
    const tail = this.tail === null || bill === null ? NO_BYTES : this.billed(this.tail, bill);
    return Buffer.concat([tail, this.failure(error)]);
  }

  reply(): ReadReply {
    this.flushBuffered();
    const { usage, isDeclined, countedTokens, publicModel: model, writeUsage } = this;
    const whole = this.collector!.whole();
    const body = (bill: Billed) =>
      Buffer.from(JSON.stringify({ ...whole, model, usage: billedUsage(whole.usage, bill, writeUsage) }));
    const texts = () => this.text.all().texts;
    const { writers } = this;
    return {
      kind: "reply",
      body,
      usage,
      isDeclined,
      countedTokens,
      texts,
      ...(writers === undefined ? {} : { writers }),
    };
  }

  protected abstract failure(error: ErrorObject): Uint8Array;

  /** The usage frame where the host has reported no usage. */
  protected usageFrame(_bill: Billed): Uint8Array {
    return NO_BYTES;
  }

  /**
   * Interprets an event: sets the fields, and adds to `edits` whatever the client must not get as it came.
   * The event that ends the stream is withheld whole.
   */
  protected abstract judge(event: CurrentEvent): void;

  /** An event of text has this number. */
  protected wasNumbered(_count: number): void {}

  protected closed(): Uint8Array {
    this.fault = ENDED_EARLY;
    return NO_BYTES;
  }

  /** The event at hand tells usage, and may be the last that does: it waits for another, or for the bill. */
  protected waitForBill(): void {
    this.reportsUsage = this.collector === null;
  }

  /** The event at hand ends the stream. */
  protected complete(event: CurrentEvent): void {
    this.isComplete = true;
    this.endMark = event.copy();
  }

  /** The event at hand tells usage and ends the stream. */
  protected completeWithUsage(event: CurrentEvent): void {
    this.isComplete = true;
    this.tail = event.copy();
  }

  /** Counts text of any kind that the model wrote, and notes that a token has arrived. */
  protected wrote(text: unknown, channel = ALONE): void {
    if (typeof text !== "string" || text === "") return;
    this.tokenSeen = true;
    this.text.add(text, channel);
  }

  private wroteJson(bytes: Uint8Array, { start, end, channel, tokens }: FoundText): void {
    if (tokens === 0) return;
    this.tokenSeen = true;
    this.text.addJson(bytes, start, end, channel, tokens);
  }

  /** The event's data, which a collector gets too. */
  protected dataOf(text: string | null): Record<string, unknown> | null {
    // A block of empty data is no event (WHATWG HTML, "Server-sent events").
    if (text === null || text.trim() === "") return null;
    const data = parseObject(text);
    if (data === null) {
      this.fault = NO_EVENT;
      return null;
    }
    this.correct(data);
    this.collector?.add(data);
    this.data = data;
    return data;
  }

  /** Corrects what this host does differently from its language, before anything else sees the event. */
  protected correct(_data: Record<string, unknown>): void {}

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

  /** Another model than the one requested answers. */
  protected nameModel(publicModel: string): void {
    this.publicModel = publicModel;
    this.modelJson = bytesOf(JSON.stringify(publicModel));
  }

  protected rename(outer: string, event: CurrentEvent): void {
    const { cursor } = this;
    if (this.passModel(outer, event)) this.edits.replace(cursor.valueStart, cursor.at, this.modelJson);
  }

  /** The event at hand reached the client as the host sent it, but for its edits. */
  protected get mayLearn(): boolean {
    return true;
  }

  protected read(bytes: Uint8Array): Uint8Array {
    const { edits, template } = this;
    const event = EVENT;
    let start = 0;
    // An exception may have left some.
    edits.forget();
    for (let at = 0; at < bytes.length && !this.over; ) {
      start = at;
      at = this.tail === null ? template.pass(bytes, start, this.collector === null ? edits : null) : -1;
      if (at !== -1) {
        this.buffered?.more(bytes, template.text.start, template.text.end);
        this.wroteJson(bytes, template.text);
        if (template.count !== -1) this.wasNumbered(template.count);
        continue;
      }
      at = eventEnd(bytes, start);
      event.moveTo(bytes, start, at);
      const first = edits.made;
      const { usage } = this;
      const { estimate } = this.text;
      this.flushBuffered();
      this.judge(event);
      if (this.usage !== usage && this.usage !== null && this.usage.output > 0) this.text.report();
      if ((this.tail !== null || this.reportsUsage) && !this.over) this.holdBack(event, first, estimate);
      else if (this.data !== null && !this.over) this.learn(event, this.data, first);
      // Streams wait long for their next event, and hold nothing that they need not.
      this.data = null;
    }
    if (this.over) edits.leaveOut(start, bytes.length);
    if (this.collector === null) return edits.applyTo(bytes);
    edits.forget();
    return NO_BYTES;
  }

  /** The next event that differs in its text alone is passed without being read. */
  private learn(event: CurrentEvent, data: Json, first: number): void {
    const { template } = this;
    if (!this.mayLearn || !template.mayLearn(event) || !SOLE_TEXT.find(event, data, this.texts)) return;
    template.learn(event, SOLE_TEXT, this.edits, first);
    this.buffered?.begin(event, SOLE_TEXT);
  }

  /** The collector gets the texts of same-shaped events as one event. */
  private flushBuffered(): void {
    const data = this.buffered?.take() ?? null;
    if (data !== null) this.collector!.add(data);
  }

  /** Keeps the event until the bill is known; text, or a later usage, shows that what was kept need not wait. */
  private holdBack({ bytes, start, end }: CurrentEvent, first: number, estimateBefore: number): void {
    const { edits, tail } = this;
    const event = edits.takeBack(first, bytes, start, end);
    let given = NO_BYTES;
    if (this.reportsUsage) {
      given = tail ?? NO_BYTES;
      this.tail = event;
    } else {
      const all = Buffer.concat([tail!, event]);
      const isText = this.text.estimate > estimateBefore;
      if (isText || all.length > MAX_TAIL_BYTES) given = all;
      this.tail = given === all ? null : all;
    }
    this.reportsUsage = false;
    edits.replace(start, end, given);
  }

  private billed(tail: Uint8Array, bill: Billed): Uint8Array {
    const event = EVENT;
    event.moveTo(tail, 0, eventEnd(tail, 0));
    if (event.dataEnd === 0) {
      // Data in several lines.
      const data = parseObject(event.data ?? "") ?? {};
      const name = typeof data.type === "string" ? data.type : null;
      const line = encodeEvent(name, data);
      return this.billed(Buffer.concat([line, tail.subarray(event.end)]), bill);
    }
    const { dataStart, dataEnd } = event;
    const { writeUsage, within, publicModel } = this;
    const json = billedJson(tail.slice(dataStart, dataEnd), bill, writeUsage, within, publicModel);
    return replaceSpan(tail, dataStart, dataEnd, json);
  }
}

/**
 * One of each for all streams: what comes is read without a wait, and nothing of them is used between two
 * reads. Thousands of streams that had their own would fetch them into the processor's caches for each event.
 */
const EDITS = new Edits();
const CURSOR = new JsonCursor();

/**
 * Events that are alike but for their texts, until another kind of event comes: parsed once, as one. Behind that,
 * as behind a ping, those like the one that was learnt may go on.
 */
class DeltaBuffer {
  private before = "";
  private after = "";
  private text = NO_BYTES;
  private length = 0;
  private isEmpty = true;

  begin({ bytes, dataStart, dataEnd }: CurrentEvent, { start, end }: FoundText): void {
    this.before = textOf(bytes, dataStart, start);
    this.after = textOf(bytes, end, dataEnd);
  }

  more(bytes: Uint8Array, from: number, to: number): void {
    const needed = this.length + to - from;
    if (needed > this.text.length) {
      const grown = new Uint8Array(Math.max(MIN_BUFFER_BYTES, 2 * needed));
      copyInto(grown, 0, this.text, 0, this.length);
      this.text = grown;
    }
    copyInto(this.text, this.length, bytes, from, to);
    this.length = needed;
    this.isEmpty = false;
  }

  /** One event with all of it; null where nothing was buffered. */
  take(): Record<string, unknown> | null {
    if (this.isEmpty) return null;
    const text = textOf(this.text, 0, this.length);
    this.length = 0;
    this.isEmpty = true;
    return parseObject(this.before + text + this.after);
  }
}

const MIN_BUFFER_BYTES = 512;

/** Puts an answer together from the objects of its events. */
export interface Collector {
  add(data: Record<string, unknown>): void;
  /** The whole answer, as a host would have given it unstreamed. */
  whole(): Record<string, unknown>;
}

/** Comments and the like that may come behind the last usage; with more of them it goes without the bill. */
const MAX_TAIL_BYTES = 64 * 1024;

export const encodeEvent = (name: string | null, data: unknown): Buffer => Buffer.from(eventText(name, data));

export const eventText = (name: string | null, data: unknown): string =>
  `${name === null ? "" : `event: ${name}\n`}data: ${JSON.stringify(data)}\n\n`;
