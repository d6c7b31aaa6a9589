import type { ErrorObject } from "../../units/errors/refusal.ts";
import type { CurrentEvent } from "../events/sse.ts";
import { errorOf, untypedError } from "../host-error.ts";
import { asObject } from "../json/json.ts";
import { encodeEvent, PassingJudge } from "../passing/judge.ts";
import { readOpenAiUsage, writeResponsesUsage } from "../usage.ts";
import { isFiltered } from "./answer-reader.ts";
import { channelOf, isWritten, RESPONSES_TEXTS } from "./text-events.ts";

const LAST_WORDS: ReadonlySet<unknown> = new Set([
  "response.completed",
  "response.incomplete",
  "response.failed",
  "error",
]);

/** A responses host's events on their way to a responses client (platform.openai.com, "Streaming events"). */
export class ResponsesJudge extends PassingJudge {
  protected readonly writeUsage = writeResponsesUsage;
  protected readonly texts = RESPONSES_TEXTS;
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
        this.parts.begin();
        const item = asObject(data.item);
        this.wrote(item?.name);
        if (item?.type === "image_generation_call" || item?.type === "web_search_call") this.tokenSeen = true;
        return;
      }
      case "response.completed":
      case "response.incomplete":
        this.usage = readOpenAiUsage(asObject(data.response)?.usage, this.usage);
        this.stoppedShort = type === "response.incomplete";
        this.isFiltered = isFiltered(asObject(data.response));
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
        if (isWritten(type))
          this.wrote(data.delta, channelOf(data.output_index, data.content_index ?? data.summary_index));
    }
  }

  protected override wasNumbered(count: number): void {
    this.sequence = count;
  }
}
