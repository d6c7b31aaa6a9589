import type { ErrorObject } from "../../errors/refusal.ts";
import { errorOf, untypedError } from "../host-error.ts";
import { asObject } from "../json.ts";
import { encodeEvent, PassingJudge } from "../judge.ts";
import type { CurrentEvent } from "../sse.ts";
import { readOpenAiUsage } from "../usage.ts";
import { writeResponsesUsage } from "./usage.ts";

const LAST_WORDS: ReadonlySet<unknown> = new Set([
  "response.completed",
  "response.incomplete",
  "response.failed",
  "error",
]);

/** A responses host's events on their way to a responses client (platform.openai.com, "Streaming events"). */
export class ResponsesJudge extends PassingJudge {
  protected readonly writeUsage = writeResponsesUsage;
  protected override readonly within = "response";
  private sequence = -1;
  private response: Record<string, unknown> = {};

  protected failure({ message, code }: ErrorObject): Uint8Array {
    const response = {
      id: "resp_gateway",
      object: "response",
      created_at: 0,
      output: [],
      ...this.response,
      model: this.publicModel,
      status: "failed",
      error: { code, message },
    };
    const event = { type: "response.failed", sequence_number: this.sequence + 1, response };
    return encodeEvent("response.failed", event);
  }

  protected judge(event: CurrentEvent): void {
    const data = this.dataOf(event.data);
    if (data === null) return;
    const { type, sequence_number: sequence } = data;
    // The host's own last words may never be given on, so their number is free for ours.
    if (typeof sequence === "number" && !LAST_WORDS.has(type)) this.sequence = sequence;
    switch (type) {
      case "response.created":
      case "response.in_progress":
      case "response.queued":
        this.response = asObject(data.response) ?? this.response;
        this.usage = readOpenAiUsage(this.response.usage, this.usage);
        this.rename("response", event);
        return;
      case "response.output_item.added": {
        const item = asObject(data.item);
        this.wrote(item?.name);
        if (item?.type === "image_generation_call" || item?.type === "web_search_call") this.tokenSeen = true;
        return;
      }
      case "response.completed":
      case "response.incomplete":
        this.usage = readOpenAiUsage(asObject(data.response)?.usage, this.usage);
        this.stoppedShort = type === "response.incomplete";
        this.completeWithUsage(event);
        return;
      case "response.failed":
        this.usage = readOpenAiUsage(asObject(data.response)?.usage, this.usage);
        this.fault = errorOf(data.response, "the response failed");
        return;
      case "error":
        this.fault = errorOf(data, "an error without a message");
        return;
      case undefined:
        this.fault = untypedError(data);
        return;
      default:
        if (typeof type === "string" && WRITTEN.includes(type))
          this.wrote(data.delta, channelOf(data.output_index, data.content_index ?? data.summary_index));
    }
  }

  protected judgeText(event: CurrentEvent): boolean {
    const { cursor } = this;
    let isDelta = false;
    let sequence = -1;
    let item = 0;
    let part = 0;
    cursor.begin(event.bytes, event.dataStart, event.dataEnd);
    cursor.enterObject();
    while (cursor.nextMember()) {
      if (cursor.isNamed("delta")) this.find(event, 0);
      else if (cursor.isNamed("sequence_number")) sequence = this.readNumber();
      else if (cursor.isNamed("output_index")) item = cursor.readCount();
      else if (cursor.isNamed("content_index") || cursor.isNamed("summary_index")) part = cursor.readCount();
      else if (cursor.isNamed("type")) {
        isDelta = this.isWritten();
        if (isDelta) cursor.skipExact();
        else cursor.giveUp();
      } else this.skipFree();
    }
    if (!cursor.isDone || !isDelta) return false;
    if (sequence !== -1) this.sequence = sequence;
    this.foundAs(0, channelOf(item, part));
    this.wroteFound(event);
    return true;
  }

  protected override passedNumber(count: number): void {
    this.sequence = count;
  }

  private isWritten(): boolean {
    for (const type of WRITTEN) if (this.cursor.isTheText(type)) return true;
    return false;
  }
}

/**
 * Events whose `delta` the model wrote. Audio and code of built-in tools are billed by the host's own report.
 */
const WRITTEN: readonly string[] = [
  "response.output_text.delta",
  "response.reasoning_text.delta",
  "response.reasoning_summary_text.delta",
  "response.refusal.delta",
  "response.function_call_arguments.delta",
  "response.custom_tool_call_input.delta",
  "response.audio.transcript.delta",
  "response.code_interpreter_call_code.delta",
  "response.mcp_call_arguments.delta",
];

const channelOf = (item: unknown, part: unknown): number =>
  (typeof item === "number" ? item : 0) * PARTS_OF_AN_ITEM + (typeof part === "number" ? part : 0);

const PARTS_OF_AN_ITEM = 1_024;
