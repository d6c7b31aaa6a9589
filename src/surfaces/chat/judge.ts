import type { ErrorObject } from "../../units/errors/refusal.ts";
import type { CurrentEvent } from "../events/sse.ts";
import { NO_BYTES } from "../json/bytes.ts";
import { asObject, type Json } from "../json/json.ts";
import { billedUsage } from "../passing/billed.ts";
import { type Collector, encodeEvent, PassingJudge } from "../passing/judge.ts";
import type { Billed } from "../surface.ts";
import { readOpenAiUsage, writeChatUsage } from "../usage.ts";
import { brokeDown, errorIn, isCut } from "./answer-reader.ts";
import { CallIndexes } from "./call-indexes.ts";
import { makeContentPlain } from "./plain-content.ts";
import { CHAT_TEXTS, forEachWrittenOf } from "./text-events.ts";

/** A chat host's chunks on their way to a chat client (platform.openai.com, "Chat completion chunk"). */
export class ChatJudge extends PassingJudge {
  protected readonly writeUsage = writeChatUsage;
  protected readonly texts = CHAT_TEXTS;
  private finished = false;
  /** The last chunk's own words for the one that ends a broken stream. */
  private id = "chatcmpl-gateway";
  private created = 0;
  private readonly callIndexes = new CallIndexes();
  /** The chunk is not what the host sent. */
  private changed = false;

  constructor(
    publicModel: string,
    collector: Collector | null,
    private readonly wantsUsage: boolean,
    private readonly ceiling: number | null = null,
  ) {
    super(publicModel, collector);
  }

  protected failure(error: ErrorObject): Uint8Array {
    const event = encodeEvent(null, { error });
    // The client has a reason already: only the end could not be recorded.
    if (this.finished) return event;
    const choices = [{ index: 0, delta: {}, finish_reason: "error" }];
    return Buffer.concat([event, this.chunk({ choices })]);
  }

  protected override usageFrame(bill: Billed): Uint8Array {
    if (!this.wantsUsage) return super.usageFrame(bill);
    return this.chunk({ choices: [], usage: billedUsage(null, bill, writeChatUsage) });
  }

  override last(bill: Billed): Uint8Array {
    const end = super.last(bill);
    return this.finished ? end : Buffer.concat([this.chunk(this.missingEnd()), end]);
  }

  /** Some hosts end their stream without a reason, which OpenAI's clients need. */
  private missingEnd(): Json {
    const whole = this.callIndexes.isEmpty ? "stop" : "tool_calls";
    const reason = isCut(this.usage, this.ceiling) ? "length" : whole;
    return { choices: [{ index: 0, delta: {}, finish_reason: reason }] };
  }

  /** One of ours, in the host's words. */
  private chunk(more: object): Uint8Array {
    const { id, created, publicModel: model } = this;
    return encodeEvent(null, { id, object: "chat.completion.chunk", created, model, ...more });
  }

  protected judge(event: CurrentEvent): void {
    const { data } = event;
    if (data === null) return;
    if (data.trim() === "[DONE]") {
      if (!this.finished) this.collector?.add(this.missingEnd());
      this.complete(event);
      return;
    }
    const chunk = this.dataOf(data);
    if (chunk === null) return;
    this.fault = errorIn(chunk);
    if (this.fault !== null) return;
    this.note(chunk);
    if (this.fault === null && this.collector === null) this.give(chunk, event);
  }

  protected override get mayLearn(): boolean {
    return !this.changed && !this.callIndexes.hasChanged;
  }

  /** A host may leave `[DONE]` out once it has given its reason to finish. */
  protected override closed(): Uint8Array {
    if (!this.finished) return super.closed();
    this.isComplete = true;
    this.endMark = DONE;
    return NO_BYTES;
  }

  protected override correct(chunk: Record<string, unknown>): void {
    this.changed = this.callIndexes.correct(chunk);
    if (Array.isArray(chunk.choices))
      for (const choice of chunk.choices)
        if (makeContentPlain(asObject(asObject(choice)?.delta))) this.changed = true;
    if (this.changed) this.template.forget();
  }

  private note(chunk: Record<string, unknown>): void {
    if (typeof chunk.id === "string") this.id = chunk.id;
    if (typeof chunk.created === "number") this.created = chunk.created;
    this.usage = readOpenAiUsage(chunk.usage, this.usage);
    if (!Array.isArray(chunk.choices)) return;
    let stops = false;
    for (const [at, choice] of chunk.choices.entries()) {
      const given = asObject(choice);
      const reason = given?.finish_reason;
      if (typeof reason === "string") stops = true;
      if (reason === "length" || reason === "content_filter") this.stoppedShort = true;
      if (reason === "content_filter") this.isFiltered = true;
      if (brokeDown(reason)) this.breakOff(`the host stopped with ${reason}`);
      forEachWrittenOf(given, at, (text, channel) => this.wrote(text, channel));
    }
    if (!stops) return;
    // One that tells of a fault is not passed on.
    if (this.fault === null) this.finished = true;
    this.stop();
  }

  /** The client gets its own name for the model, and usage only if it asked for it. */
  private give(chunk: Record<string, unknown>, event: CurrentEvent): void {
    const renames = typeof chunk.model === "string" && chunk.model !== this.publicModel;
    const withholds = !this.wantsUsage && "usage" in chunk;
    if (this.wantsUsage && asObject(chunk.usage) !== null && (this.finished || isUsageAlone(chunk)))
      this.waitForBill();
    if (withholds && isUsageAlone(chunk)) this.edits.leaveOut(event.start, event.end);
    else if (this.changed || isInLines(event)) {
      if (this.changed || renames || withholds) this.rewrite(chunk, event, withholds);
    } else {
      if (renames) this.renameModel(event);
      if (withholds) this.withholdUsage(event);
    }
  }

  private rewrite(chunk: Record<string, unknown>, { start, end }: CurrentEvent, withholds: boolean): void {
    const { usage, ...rest } = chunk;
    const given = { ...rest, ...(withholds ? {} : { usage }), model: this.publicModel };
    this.edits.replace(start, end, encodeEvent(null, given));
  }

  private renameModel({ bytes, dataStart, dataEnd }: CurrentEvent): void {
    const { cursor, edits } = this;
    cursor.begin(bytes, dataStart, dataEnd);
    if (cursor.passMember("model")) edits.replace(cursor.valueStart, cursor.at, this.modelJson);
  }

  private withholdUsage({ bytes, dataStart, dataEnd }: CurrentEvent): void {
    const { cursor, edits } = this;
    cursor.begin(bytes, dataStart, dataEnd);
    if (!cursor.passMember("usage")) return;
    const { comma, memberStart } = cursor;
    if (comma === -1) edits.leaveOut(memberStart, cursor.nextMemberStart);
    else edits.leaveOut(comma, cursor.at);
  }
}

/** A chunk that OpenAI adds to the end, because usage was asked for. */
const isUsageAlone = ({ choices }: Record<string, unknown>): boolean =>
  Array.isArray(choices) && choices.length === 0;

/** Data in several lines stands nowhere in one piece. */
const isInLines = ({ dataEnd }: CurrentEvent): boolean => dataEnd === 0;

const DONE = Buffer.from("data: [DONE]\n\n");
