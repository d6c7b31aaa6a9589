import type { ErrorObject } from "../../units/errors/refusal.ts";
import type { CurrentEvent } from "../events/sse.ts";
import { errorOf, untypedError } from "../host-error.ts";
import { bytesOf } from "../json/bytes.ts";
import { asObject, type MutableJson } from "../json/json.ts";
import { billedUsage } from "../passing/billed.ts";
import { type Collector, encodeEvent, PassingJudge } from "../passing/judge.ts";
import type { AnswerMetadata, Billed, Hop } from "../surface.ts";
import { readAnthropicBeginning, readAnthropicUsage, writeMessagesUsage } from "../usage.ts";
import { isShort, REFUSAL } from "./answer-reader.ts";
import { hopOf, renameHop } from "./fallback-blocks.ts";
import { MESSAGES_TEXTS } from "./text-events.ts";

/** A messages host's events on their way to a messages client (docs.anthropic.com, "Streaming messages"). */
export class MessagesJudge extends PassingJudge {
  protected readonly writeUsage = writeMessagesUsage;
  protected readonly texts = MESSAGES_TEXTS;
  /** Why it stopped, in the host's words. */
  private stopped: Record<string, unknown> = NO_REASON;
  /** The one that the event at hand tells. */
  private hop: Hop | null = null;
  override readonly writers: { first: string | null; readonly hops: Hop[] } | undefined;

  constructor(
    publicModel: string,
    collector: Collector | null,
    /** The host may fall back by itself. */
    private readonly idOf?: AnswerMetadata["idOf"],
  ) {
    super(publicModel, collector);
    this.writers = idOf === undefined ? undefined : { first: null, hops: [] };
  }

  /** In a message_delta of ours, because nothing else of a stream tells usage at its end. */
  protected override usageFrame(bill: Billed): Uint8Array {
    const usage = billedUsage(null, bill, writeMessagesUsage);
    return encodeEvent("message_delta", { type: "message_delta", delta: this.stopped, usage });
  }

  protected failure({ message, type, code, param }: ErrorObject): Uint8Array {
    return encodeEvent("error", { type: "error", error: { type, message, code, param } });
  }

  protected judge(event: CurrentEvent): void {
    const data = this.dataOf(event.data);
    if (data === null) return;
    switch (data.type) {
      case "message_start":
        this.usage = readAnthropicBeginning(asObject(data.message)?.usage);
        this.begin(asObject(data.message)?.model);
        this.rename("message", event);
        return;
      case "content_block_start":
        // In several lines of data, it stays as it came.
        if (this.hop !== null && event.dataEnd > 0)
          this.edits.replace(event.dataStart, event.dataEnd, bytesOf(JSON.stringify(data)));
        this.startBlock(asObject(data.content_block), typeof data.index === "number" ? data.index : 0);
        return;
      case "content_block_delta": {
        const delta = asObject(data.delta);
        const block = typeof data.index === "number" ? data.index : 0;
        this.wrote(delta?.text, block);
        this.wrote(delta?.thinking, block);
        this.wrote(delta?.partial_json, block);
        return;
      }
      case "message_delta":
        this.usage = readAnthropicUsage(data.usage, this.usage);
        this.stopped = asObject(data.delta) ?? NO_REASON;
        this.stoppedShort = isShort(this.stopped.stop_reason);
        this.isFiltered = this.stopped.stop_reason === REFUSAL;
        if (typeof this.stopped.stop_reason === "string") this.stop();
        this.waitForBill();
        return;
      case "message_stop":
        this.complete(event);
        return;
      case "error":
        this.fault = errorOf(data, "an error without a message");
        return;
      case undefined:
        this.fault = untypedError(data);
    }
  }

  private begin(model: unknown): void {
    const { idOf, writers } = this;
    if (idOf === undefined || writers === undefined || typeof model !== "string") return;
    writers.first = model;
    this.nameModel(idOf({ first: model, hops: [] }));
  }

  /** Where another model takes over, clients read its name in the block: it becomes the public one. */
  protected override correct(data: MutableJson): void {
    this.hop = data.type === "content_block_start" ? this.takeHop(asObject(data.content_block)) : null;
  }

  private takeHop(block: MutableJson | null): Hop | null {
    const { idOf, writers, text, collector } = this;
    if (block?.type !== "fallback" || idOf === undefined || writers === undefined) return null;
    const hop = hopOf(block, text.moment);
    if (hop === null) return null;
    writers.hops.push(hop);
    renameHop(block, hop, writers, idOf);
    // A whole message names who ended it.
    if (collector !== null) this.nameModel(idOf(writers));
    return hop;
  }

  /** A tool's name and a redacted thought are things the model wrote; an empty text block is not. */
  private startBlock(block: Record<string, unknown> | null, index: number): void {
    this.parts.begin();
    this.wrote(block?.text, index);
    this.wrote(block?.thinking, index);
    this.wrote(block?.name);
    if (block?.type === "redacted_thinking") this.tokenSeen = true;
  }
}

const NO_REASON = { stop_reason: null, stop_sequence: null, stop_details: null, container: null };
