import type { ErrorObject } from "../../units/errors/refusal.ts";
import { asObject, type Json } from "../json/json.ts";
import { billedUsage } from "../passing/billed.ts";
import type { AnswerMetadata, Billed, Usage } from "../surface.ts";
import { writeResponsesUsage } from "../usage.ts";
import type { Citation, OpenBlock, StopReason } from "../vocabulary/answer-events.ts";
import {
  type AnswerBlock,
  AnswerWriter,
  answerId,
  beginBlock,
  type CollectedAnswer,
} from "../vocabulary/answer-writer.ts";
import { citationOf } from "../vocabulary/citations.ts";
import type { Seal } from "../vocabulary/conversation.ts";
import { NO_PARAMETERS } from "../vocabulary/members.ts";
import { sealText } from "../vocabulary/seal.ts";
import { callName, type NamedTool, offeredTools } from "../vocabulary/tools.ts";
import { asksForSummary, summaryMark } from "./compaction.ts";
import { PART_EVENTS, type PartEvents } from "./part-events.ts";
import { wantsEncrypted } from "./request-reader.ts";

/** Events for a responses client, numbered from 0. */
export class ResponsesWriter extends AnswerWriter {
  private sequence = 0;
  private id = "resp_gateway";
  private readonly output: Json[] = [];
  /** The block that is open, or was last. */
  private current = beginBlock({ kind: "text" });
  private item: Record<string, unknown> = {};
  private summarised = false;
  private deltaForm: ReturnType<ResponsesWriter["formOfDeltas"]> | null = null;
  private reason: StopReason = "end";

  constructor(
    private readonly request: Json,
    private readonly metadata: AnswerMetadata,
    private readonly form: ItemForm,
  ) {
    super();
  }

  start(id: string | null): void {
    this.id = answerId("resp_", id);
    const response = this.response("in_progress", null);
    this.emit("response.created", { response });
    this.emit("response.in_progress", { response });
  }

  open(block: OpenBlock): void {
    this.current = beginBlock(block);
    this.summarised = false;
    this.deltaForm = null;
    this.item = itemOf(block, this.id, this.output.length, "in_progress", this.form);
    this.emit("response.output_item.added", { output_index: this.output.length, item: this.item });
    if (this.form.isSummary || (block.kind !== "text" && block.kind !== "refusal")) return;
    this.emit("response.content_part.added", { ...this.at(), part: partOf(this.current) });
  }

  delta(text: string, logprobs: readonly unknown[] = NO_LOGPROBS): void {
    const { current } = this;
    current.text += text;
    if (this.form.isSummary) return;
    for (const one of logprobs) current.logprobs.push(one);
    const { kind } = current.block;
    if (kind === "reasoning" && !this.summarised) {
      this.summarised = true;
      this.emit("response.reasoning_summary_part.added", { ...this.at(), part: summaryOf("") });
    }
    if (logprobs.length === 0 || kind !== "text") this.emitDelta(text);
    else this.emit("response.output_text.delta", { ...this.at(), delta: text, logprobs });
  }

  override cite(citation: Citation): void {
    const annotation_index = this.current.citations.push(citation) - 1;
    const annotation = annotationOf(citation);
    this.emit("response.output_text.annotation.added", { ...this.at(), annotation_index, annotation });
  }

  close(seal: Seal | null): void {
    const { current, form, id, output } = this;
    current.seal = seal;
    if (!form.isSummary && (current.block.kind !== "reasoning" || this.summarised)) this.emitDone();
    const item = finishedItem(current, id, output.length, form, wantsEncrypted(this.request));
    this.emit("response.output_item.done", { output_index: output.length, item });
    output.push(item);
  }

  private emitDone(): void {
    const { block, text, logprobs } = this.current;
    const { done, member, part } = eventsOf(block);
    // `name` is documented for functions only.
    const name = member === "arguments" ? { name: this.item.name } : {};
    const more = block.kind === "text" ? { logprobs } : {};
    this.emit(done, { ...this.at(), ...name, [member]: text, ...more });
    if (part === null) return;
    const whole = block.kind === "reasoning" ? summaryOf(text) : partOf(this.current);
    this.emit(part.done, { ...this.at(), part: whole });
  }

  stop(reason: StopReason): void {
    this.reason = reason;
  }

  last(bill: Billed): Uint8Array {
    const status = statusOf(this.reason);
    const usage = billedUsage(null, bill, writeResponsesUsage);
    this.emit(`response.${status}`, { response: this.response(status, usage) });
    return this.take();
  }

  fail({ message, code }: ErrorObject): Uint8Array {
    const response = { ...this.response("failed", null), error: { code, message } };
    this.emit("response.failed", { response });
    return this.take();
  }

  /** There is one for every token. */
  private emitDelta(text: string): void {
    const [type, indexes, tail] = (this.deltaForm ??= this.formOfDeltas());
    this.frame(
      `event: ${type}\ndata: {"type":"${type}","sequence_number":${this.sequence},${indexes},"delta":${JSON.stringify(text)}${tail}}\n\n`,
    );
    this.sequence += 1;
  }

  /** For deltas of the open block: the event's type, its members before the text, and those behind it. */
  private formOfDeltas(): readonly [type: string, indexes: string, tail: string] {
    const { block } = this.current;
    const indexes = JSON.stringify(this.at()).slice(1, -1);
    return [eventsOf(block).delta, indexes, block.kind === "text" ? ',"logprobs":[]' : ""];
  }

  private response(status: string, usage: object | null): Json {
    return responseOf(this.request, this.metadata, {
      id: this.id,
      status,
      output: [...this.output],
      reason: this.reason,
      usage,
    });
  }

  private emit(type: string, fields: Json): void {
    this.event(type, JSON.stringify({ type, sequence_number: this.sequence, ...fields }));
    this.sequence += 1;
  }

  /** Where the open block's text stands. */
  private at(): Json {
    const inItem = { item_id: this.item.id, output_index: this.output.length };
    const { kind } = this.current.block;
    if (kind === "tool_call") return inItem;
    return { ...inItem, [kind === "reasoning" ? "summary_index" : "content_index"]: 0 };
  }
}

const NO_LOGPROBS: readonly unknown[] = [];

function eventsOf(block: OpenBlock): PartEvents {
  switch (block.kind) {
    case "text":
      return PART_EVENTS.output_text;
    case "refusal":
      return PART_EVENTS.refusal;
    case "reasoning":
      return PART_EVENTS.summary_text;
    case "tool_call":
      return block.custom ? PART_EVENTS.custom_tool_call : PART_EVENTS.function_call;
  }
}

export interface ItemForm {
  readonly tools: readonly NamedTool[];
  /** The answer's text is a summary, and nothing else is wanted. */
  readonly isSummary: boolean;
}

export const itemForm = (request: Json): ItemForm => ({
  tools: offeredTools(request),
  isSummary: asksForSummary(request),
});

export function writeResponsesAnswer(
  answer: CollectedAnswer,
  usage: Usage,
  request: Json,
  metadata: AnswerMetadata,
): Json {
  const id = answerId("resp_", answer.id);
  const encrypted = wantsEncrypted(request);
  const form = itemForm(request);
  return responseOf(request, metadata, {
    id,
    status: statusOf(answer.reason),
    output: answer.blocks.map((block, at) => finishedItem(block, id, at, form, encrypted)),
    reason: answer.reason,
    usage: writeResponsesUsage(usage),
  });
}

const statusOf = (reason: StopReason): "completed" | "incomplete" =>
  reason === "length" || reason === "filter" ? "incomplete" : "completed";

interface ResponseBody {
  readonly id: string;
  readonly status: string;
  readonly output: readonly Json[];
  readonly reason: StopReason;
  readonly usage: object | null;
}

/**
 * The object that a response is, with the client's request repeated, as OpenAI does. Every member is always
 * there, and never null where Open Responses has a number: strict clients refuse what lacks one.
 */
function responseOf(request: Json, { publicModel, atS, endS }: AnswerMetadata, body: ResponseBody): Json {
  const { id, status, output, reason, usage } = body;
  return {
    id,
    object: "response",
    created_at: atS,
    status,
    background: false,
    completed_at: status === "completed" ? (endS?.() ?? atS) : null,
    error: null,
    frequency_penalty: request.frequency_penalty ?? 0,
    incomplete_details:
      status === "incomplete"
        ? { reason: reason === "filter" ? "content_filter" : "max_output_tokens" }
        : null,
    instructions: request.instructions ?? null,
    max_output_tokens: request.max_output_tokens ?? null,
    max_tool_calls: request.max_tool_calls ?? null,
    metadata: request.metadata ?? {},
    model: publicModel,
    access_programs: null,
    output,
    parallel_tool_calls: request.parallel_tool_calls ?? true,
    presence_penalty: request.presence_penalty ?? 0,
    previous_response_id: null,
    prompt_cache_key: request.prompt_cache_key ?? null,
    reasoning: { effort: null, summary: null, ...asObject(request.reasoning) },
    safety_identifier: request.safety_identifier ?? null,
    service_tier: "default",
    store: false,
    temperature: request.temperature ?? 1,
    text: { format: { type: "text" }, ...asObject(request.text) },
    tool_choice: request.tool_choice ?? "auto",
    tools: Array.isArray(request.tools) ? request.tools.map(toolOf) : [],
    top_logprobs: request.top_logprobs ?? 0,
    top_p: request.top_p ?? 1,
    truncation: "disabled",
    usage: usage ?? null,
  };
}

/** What a client may leave out, an answer names. */
function toolOf(value: unknown): unknown {
  const tool = asObject(value);
  return tool?.type === "function"
    ? { description: null, parameters: NO_PARAMETERS, strict: null, ...tool }
    : value;
}

function itemOf(
  block: OpenBlock,
  response: string,
  at: number,
  status: string,
  { tools, isSummary }: ItemForm,
): Record<string, unknown> {
  const id = (prefix: string) => `${prefix}_${response.slice("resp_".length)}_${at}`;
  if (isSummary) return { id: id("cmp"), type: "compaction", encrypted_content: "" };
  switch (block.kind) {
    case "text":
    case "refusal":
      return { id: id("msg"), type: "message", status, role: "assistant", content: [] };
    case "reasoning":
      return { id: id("rs"), type: "reasoning", summary: [] };
    case "tool_call":
      return block.custom
        ? {
            id: id("ctc"),
            type: "custom_tool_call",
            call_id: block.id,
            ...callName(block.name, tools),
            input: "",
          }
        : {
            id: id("fc"),
            type: "function_call",
            status,
            call_id: block.id,
            ...callName(block.name, tools),
            arguments: "",
          };
  }
}

function finishedItem(
  answered: AnswerBlock,
  response: string,
  at: number,
  form: ItemForm,
  encrypted: boolean,
): Json {
  const { block, text, seal } = answered;
  const item = itemOf(block, response, at, "completed", form);
  if (form.isSummary) return { ...item, encrypted_content: summaryMark(text) };
  switch (block.kind) {
    case "text":
    case "refusal":
      return { ...item, content: [partOf(answered)] };
    case "reasoning":
      return {
        ...item,
        summary: text === "" ? [] : [summaryOf(text)],
        ...(encrypted && seal !== null ? { encrypted_content: sealText(seal) } : {}),
      };
    case "tool_call":
      return block.custom ? { ...item, input: text } : { ...item, arguments: text };
  }
}

const partOf = ({ block, text, logprobs, citations }: AnswerBlock): Json =>
  block.kind === "refusal"
    ? { type: "refusal", refusal: text }
    : { type: "output_text", text, annotations: citations.map(annotationOf), logprobs };

const annotationOf = (citation: Citation): Json => ({ type: "url_citation", ...citationOf(citation) });

const summaryOf = (text: string): Json => ({ type: "summary_text", text });
