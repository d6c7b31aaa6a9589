import type { ErrorObject } from "../../errors/refusal.ts";
import { ALONE } from "../../tokens/answer-text.ts";
import { billedUsage } from "../billed.ts";
import { asObject } from "../json.ts";
import { CHANNELS_OF_A_CHOICE, type Collector, encodeEvent, PassingJudge } from "../judge.ts";
import type { CurrentEvent } from "../sse.ts";
import type { Billed } from "../surface.ts";
import { readOpenAiUsage } from "../usage.ts";
import { brokeDown } from "./answer-reader.ts";
import { CallIndexes } from "./call-indexes.ts";
import { errorIn } from "./chunk-error.ts";
import { makeContentPlain } from "./plain-content.ts";
import { writeChatUsage } from "./usage.ts";
import { CHANNEL, callChannel, forEachWritten } from "./written.ts";

/** A chat host's chunks on their way to a chat client (platform.openai.com, "Chat completion chunk"). */
export class ChatJudge extends PassingJudge {
  protected readonly writeUsage = writeChatUsage;
  private finished = false;
  /** The last chunk's own words for the one that ends a broken stream. */
  private id = "chatcmpl-gateway";
  private created = 0;
  private readonly callIndexes = new CallIndexes();
  /** The chunk is not what the host sent. */
  private mended = false;

  constructor(
    publicModel: string,
    collector: Collector | null,
    private readonly wantsUsage: boolean,
  ) {
    super(publicModel, collector);
  }

  protected failure(error: ErrorObject): Uint8Array {
    const choices = [{ index: 0, delta: {}, finish_reason: "error" }];
    return Buffer.concat([encodeEvent(null, { error }), this.chunk({ choices })]);
  }

  protected override untold(bill: Billed): Uint8Array {
    if (!this.wantsUsage) return super.untold(bill);
    return this.chunk({ choices: [], usage: billedUsage(null, bill, writeChatUsage) });
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

  /**
   * A chunk of text or arguments and nothing else, which is the way of nearly all, is read where it stands.
   * False when it says more than that. The first token's is read whole, for the words of `fail`.
   */
  protected judgeText(event: CurrentEvent): boolean {
    if (!this.tokenSeen || this.callIndexes.hasChanged) return false;
    const { cursor, edits } = this;
    let hasChoices = false;
    let modelStart = 0;
    let modelEnd = 0;
    let usageComma = 0;
    let usageEnd = 0;
    cursor.begin(event.bytes, event.dataStart, event.dataEnd);
    cursor.enterObject();
    while (cursor.nextMember()) {
      if (cursor.isNamed("choices")) {
        hasChoices = true;
        this.readChoices(event);
      } else if (cursor.isNamed("model")) {
        const renames = cursor.isText && !cursor.isTheText(this.publicModel);
        modelStart = cursor.at;
        cursor.skipExact();
        modelEnd = renames ? cursor.at : 0;
      } else if (cursor.isNamed("usage")) {
        usageComma = cursor.comma;
        cursor.skipNull();
        usageEnd = cursor.at;
      } else if (cursor.isNamed("error") || cursor.isNamed("x_groq")) cursor.skipNull();
      else this.skipFree();
    }
    // A usage that stands first has its comma behind it: such a chunk is read whole.
    if (!cursor.isDone || !hasChoices || usageComma === -1) return false;
    this.wroteFound(event);
    if (modelEnd > 0) edits.replace(modelStart, modelEnd, this.modelJson);
    // OpenAI puts a null into every chunk once usage is asked for, so this is the way of most of them.
    if (usageEnd > 0 && !this.wantsUsage) edits.leaveOut(usageComma, usageEnd);
    return true;
  }

  /** A chunk without any is no text. */
  private readChoices(event: CurrentEvent): void {
    const { cursor } = this;
    let count = 0;
    cursor.enterArray();
    while (cursor.nextValue()) {
      const { found: first } = this;
      let index = count;
      count += 1;
      cursor.enterObject();
      while (cursor.nextMember()) {
        if (cursor.isNamed("delta")) this.readDelta(event);
        else if (cursor.isNamed("finish_reason")) cursor.skipNull();
        else if (cursor.isNamed("index")) index = cursor.readCount();
        else cursor.skipOther();
      }
      if (index > 0) this.foundInChoice(first, index);
    }
    if (count === 0) cursor.giveUp();
  }

  private readDelta(event: CurrentEvent): void {
    const { cursor } = this;
    let thought = false;
    cursor.enterObject();
    while (cursor.nextMember()) {
      if (cursor.isNamed("role")) cursor.skipExact();
      else if (cursor.isNamed("content")) this.find(event, CHANNEL.text);
      else if (cursor.isNamed("reasoning_content") || cursor.isNamed("reasoning")) {
        // Hosts that know both names say the same by both.
        if (thought && cursor.isText) cursor.giveUp();
        thought ||= cursor.isText;
        this.find(event, CHANNEL.thoughts);
      } else if (cursor.isNamed("tool_calls") && cursor.isArray) this.readCalls(event);
      else cursor.skipNull();
    }
  }

  /** Agents write more arguments than anything else. */
  private readCalls(event: CurrentEvent): void {
    const { cursor } = this;
    cursor.enterArray();
    while (cursor.nextValue()) {
      const { found: first } = this;
      cursor.enterObject();
      let index = -1;
      while (cursor.nextMember()) {
        if (cursor.isNamed("function")) this.readFunction(event);
        else if (cursor.isNamed("custom")) cursor.giveUp();
        else if (cursor.isNamed("index")) index = cursor.readCount();
        else cursor.skipOther();
      }
      if (index === -1) cursor.giveUp();
      this.foundAs(first, callChannel(index));
    }
  }

  private readFunction(event: CurrentEvent): void {
    const { cursor } = this;
    cursor.enterObject();
    while (cursor.nextMember()) {
      if (cursor.isNamed("arguments")) this.find(event, CHANNEL.calls);
      // A call begins, perhaps at the index of another.
      else if (cursor.isNamed("name") && !cursor.isTheText("")) cursor.skipNull();
      else cursor.skipOther();
    }
  }

  /** A host may leave `[DONE]` out once it has given its reason to finish. */
  protected override closed(): void {
    if (!this.finished) return super.closed();
    this.isComplete = true;
    this.endMark = DONE;
  }

  protected override mend(chunk: Record<string, unknown>): void {
    this.mended = this.callIndexes.mend(chunk);
    if (Array.isArray(chunk.choices))
      for (const choice of chunk.choices)
        if (makeContentPlain(asObject(asObject(choice)?.delta))) this.mended = true;
    if (this.mended) this.forgetLikeness();
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
      if (brokeDown(reason)) this.breakOff(`the host stopped with ${reason}`);
      const nth = typeof given?.index === "number" ? given.index : at;
      forEachWritten(asObject(given?.delta), (text, kind) => {
        this.wrote(text, kind === ALONE ? ALONE : nth * CHANNELS_OF_A_CHOICE + kind);
      });
    }
    if (!stops) return;
    this.finished = true;
    this.stop();
  }

  /** The client gets its own name for the model, and usage only if it asked for it. */
  private give(chunk: Record<string, unknown>, event: CurrentEvent): void {
    const renames = typeof chunk.model === "string" && chunk.model !== this.publicModel;
    const withholds = !this.wantsUsage && "usage" in chunk;
    if (this.wantsUsage && asObject(chunk.usage) !== null && (this.finished || isUsageAlone(chunk)))
      this.waitForBill();
    if (withholds && isUsageAlone(chunk)) this.edits.leaveOut(event.start, event.end);
    else if (this.mended || isInLines(event)) {
      if (this.mended || renames || withholds) this.giveAnew(chunk, event, withholds);
    } else {
      if (renames) this.renameModel(event);
      if (withholds) this.withholdUsage(event);
    }
  }

  private giveAnew(chunk: Record<string, unknown>, { start, end }: CurrentEvent, withholds: boolean): void {
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

export const DONE = Buffer.from("data: [DONE]\n\n");
