import type { ErrorObject } from "../errors/refusal.ts";
import type { Answer, AnswerBlock, AnswerEvents, OpenBlock, StopReason } from "./answer-events.ts";
import { type AnswerReader, ENDED_EARLY, fault } from "./answer-reader.ts";
import { AnswerWriter, answerId, NO_USAGE } from "./answer-writer.ts";
import { BlockQueue, MAX_HELD_CHARACTERS } from "./block-queue.ts";
import type { Seal } from "./conversation.ts";
import { errorOf } from "./host-error.ts";
import { asObject, dataObject } from "./judge.ts";
import { NO_PARAMETERS, present } from "./members.ts";
import { readReasoningItem, wantsEncrypted } from "./responses-request.ts";
import { sealText } from "./seal.ts";
import type { EventFields } from "./sse.ts";
import type { Asked, HostError, Usage } from "./surface.ts";
import { callName, type NamedTool, namedTools } from "./tool-names.ts";
import { readOpenAiUsage } from "./usage.ts";

type Json = Readonly<Record<string, unknown>>;

/**
 * A responses host's events, read (platform.openai.com, "Streaming events"). Items may be told side by side; what a host
 * tells only in an item's last event is told then.
 */
export class ResponsesReader implements AnswerReader {
  private readonly queue: BlockQueue;
  private readonly items = new Map<unknown, ItemState>();
  private called = false;

  constructor(
    private readonly events: AnswerEvents,
    private readonly family: string,
  ) {
    this.queue = new BlockQueue(events);
  }

  read(event: EventFields): "more" | "ping" | "end" | HostError {
    if (event.data === null) return "ping";
    const data = dataObject(event);
    if (data === null) return "more";
    switch (data.type) {
      case "keepalive":
        return "ping";
      case "response.created": {
        const id = asObject(data.response)?.id;
        this.events.start(typeof id === "string" ? id : null, null);
        return "more";
      }
      case "response.output_item.added":
        this.open(data.output_index, asObject(data.item) ?? {});
        return "more";
      case "response.output_text.delta": {
        const { logprobs } = data;
        const told = Array.isArray(logprobs) && logprobs.length > 0 ? logprobs : undefined;
        this.told(data, "text", data.delta, told);
        break;
      }
      case "response.refusal.delta":
        this.told(data, "refusal", data.delta);
        break;
      case "response.reasoning_summary_part.added":
        this.nextThought(data.output_index);
        break;
      case "response.reasoning_summary_text.delta":
      case "response.reasoning_text.delta":
        this.told(data, "reasoning", data.delta);
        break;
      case "response.function_call_arguments.delta":
      case "response.custom_tool_call_input.delta":
        this.told(data, "tool_call", data.delta);
        break;
      case "response.output_item.done":
        this.done(data.output_index, asObject(data.item) ?? {});
        return "more";
      case "response.completed":
      case "response.incomplete":
        return this.finish(asObject(data.response) ?? {});
      case "response.failed":
        return errorOf(data.response, "the response failed");
      case "error":
        return errorOf(data, "an error without a message");
    }
    return this.queue.heldCharacters > MAX_HELD_CHARACTERS ? fault("too many items at once") : "more";
  }

  close(): HostError {
    return ENDED_EARLY;
  }

  private open(index: unknown, item: Json): void {
    const state: ItemState = { told: "", part: null, parts: 0 };
    this.items.set(index, state);
    if (item.type !== "function_call" && item.type !== "custom_tool_call") return;
    this.called = true;
    state.part = `${String(index)} call`;
    this.queue.open(state.part, {
      kind: "tool_call",
      id: String(item.call_id ?? item.id),
      name: String(item.name),
      custom: item.type === "custom_tool_call",
    });
  }

  private told(data: Json, kind: OpenBlock["kind"], text: unknown, logprobs?: readonly unknown[]): void {
    if (typeof text !== "string" || text === "") return;
    const state = this.items.get(data.output_index);
    if (state === undefined) return;
    const { content_index: part = 0 } = data;
    const key =
      kind === "tool_call"
        ? state.part!
        : `${String(data.output_index)} ${kind} ${kind === "reasoning" ? "" : String(part)}`;
    if (state.part !== key) {
      if (kind === "tool_call") return;
      if (state.part !== null) this.queue.close(state.part, null);
      state.part = key;
      this.queue.open(key, { kind });
    }
    state.told += text;
    this.queue.delta(key, text, logprobs);
  }

  /** Thoughts come in paragraphs. */
  private nextThought(index: unknown): void {
    const state = this.items.get(index);
    if (state === undefined) return;
    state.parts += 1;
    if (state.parts > 1) this.told({ output_index: index }, "reasoning", "\n\n");
  }

  private done(index: unknown, item: Json): void {
    if (!this.items.has(index)) this.open(index, item);
    const state = this.items.get(index)!;
    const rest = { output_index: index };
    let seal: Seal | null = null;
    switch (item.type) {
      case "message":
        if (state.told === "") this.tellContent(index, item.content);
        break;
      case "function_call":
        if (state.told === "") this.told(rest, "tool_call", item.arguments);
        break;
      case "custom_tool_call":
        if (state.told === "") this.told(rest, "tool_call", item.input);
        break;
      case "reasoning": {
        const thought = readReasoningItem(item);
        if (state.told === "") this.told(rest, "reasoning", thought.text);
        seal = thought.seal === null ? null : { ...thought.seal, family: this.family };
        if (seal !== null && state.part === null) {
          state.part = `${String(index)} reasoning`;
          this.queue.open(state.part, { kind: "reasoning" });
        }
      }
    }
    if (state.part !== null) this.queue.close(state.part, seal);
    this.items.delete(index);
  }

  private tellContent(index: unknown, content: unknown): void {
    for (const [at, value] of (Array.isArray(content) ? content : []).entries()) {
      const part = asObject(value) ?? {};
      const place = { output_index: index, content_index: at };
      if (part.type === "refusal") this.told(place, "refusal", part.refusal);
      else this.told(place, "text", part.text);
    }
  }

  private finish(response: Json): "end" {
    this.queue.closeAll();
    const usage = readOpenAiUsage(response.usage);
    if (usage !== null) this.events.usage(usage);
    this.events.stop(reasonOf(response, this.called), null);
    return "end";
  }
}

interface ItemState {
  /** What of it was told. */
  told: string;
  /** Key of the block that is open. */
  part: string | null;
  /** Paragraphs of thoughts. */
  parts: number;
}

function reasonOf(response: Json, called: boolean): StopReason {
  if (response.status === "incomplete")
    return asObject(response.incomplete_details)?.reason === "content_filter" ? "filter" : "length";
  return called ? "tools" : "end";
}

/** A whole answer of a responses host: its items, as their last events would tell them. */
export function readResponsesAnswer(json: Json, events: AnswerEvents, family: string): HostError | null {
  if (json.status === "failed" || (json.error !== undefined && json.error !== null))
    return errorOf(json, "the response failed");
  if (!Array.isArray(json.output)) return fault("the answer has no output");
  const reader = new ResponsesReader(events, family);
  const tell = (data: Json) =>
    reader.read({ name: null, dataStart: 0, dataEnd: 0, data: JSON.stringify(data) });
  tell({ type: "response.created", response: { id: json.id } });
  for (const [output_index, item] of json.output.entries())
    tell({ type: "response.output_item.done", output_index, item });
  const { status, incomplete_details, usage } = json;
  tell({ type: "response.completed", response: { status, incomplete_details, usage } });
  return null;
}

/** Events for a responses client, numbered from 0. */
export class ResponsesWriter extends AnswerWriter {
  private sequence = 0;
  private id = "resp_gateway";
  private readonly output: Json[] = [];
  private block: OpenBlock = { kind: "text" };
  private item: Record<string, unknown> = {};
  private text = "";
  private logprobs: unknown[] = [];
  private summarised = false;
  private used: Usage | null = null;
  private reason: StopReason = "end";

  private readonly tools: readonly NamedTool[];

  constructor(
    private readonly request: Json,
    private readonly asked: Asked,
  ) {
    super();
    this.tools = namedTools(request.tools);
  }

  start(id: string | null): void {
    this.id = answerId("resp_", id);
    const response = this.response("in_progress", null);
    this.tell("response.created", { response });
    this.tell("response.in_progress", { response });
  }

  open(block: OpenBlock): void {
    this.block = block;
    this.text = "";
    this.logprobs = [];
    this.summarised = false;
    this.item = itemOf(block, this.id, this.output.length, "in_progress", this.tools);
    this.tell("response.output_item.added", { ...this.place(), item: this.item });
    const { kind } = block;
    if (kind === "text" || kind === "refusal")
      this.tell("response.content_part.added", { ...this.part(), part: partOf(kind, "", []) });
  }

  delta(text: string, logprobs: readonly unknown[] = []): void {
    this.text += text;
    for (const one of logprobs) this.logprobs.push(one);
    const { kind } = this.block;
    if (kind === "reasoning" && !this.summarised) {
      this.summarised = true;
      this.tell("response.reasoning_summary_part.added", { ...this.summary(), part: summaryOf("") });
    }
    switch (kind) {
      case "text":
        this.tell("response.output_text.delta", { ...this.part(), delta: text, logprobs });
        return;
      case "refusal":
        this.tell("response.refusal.delta", { ...this.part(), delta: text });
        return;
      case "reasoning":
        this.tell("response.reasoning_summary_text.delta", { ...this.summary(), delta: text });
        return;
      case "tool_call":
        this.tell(CALL_EVENTS[this.custom ? "custom" : "function"].delta, { ...this.inItem(), delta: text });
    }
  }

  close(seal: Seal | null): void {
    const { text, logprobs } = this;
    switch (this.block.kind) {
      case "text":
        this.tell("response.output_text.done", { ...this.part(), text, logprobs });
        this.tell("response.content_part.done", { ...this.part(), part: partOf("text", text, logprobs) });
        break;
      case "refusal":
        this.tell("response.refusal.done", { ...this.part(), refusal: text });
        this.tell("response.content_part.done", { ...this.part(), part: partOf("refusal", text, []) });
        break;
      case "reasoning":
        if (!this.summarised) break;
        this.tell("response.reasoning_summary_text.done", { ...this.summary(), text });
        this.tell("response.reasoning_summary_part.done", { ...this.summary(), part: summaryOf(text) });
        break;
      case "tool_call": {
        const { done, member } = CALL_EVENTS[this.custom ? "custom" : "function"];
        // `name` is documented for functions only.
        this.tell(done, {
          ...this.inItem(),
          ...(this.custom ? {} : { name: this.item.name }),
          [member]: text,
        });
      }
    }
    const block: AnswerBlock = { block: this.block, text, logprobs, seal };
    const item = finishedItem(block, this.id, this.output.length, this.tools, wantsEncrypted(this.request));
    this.tell("response.output_item.done", { ...this.place(), item });
    this.output.push(item);
  }

  usage(usage: Usage): void {
    this.used = usage;
  }

  stop(reason: StopReason): void {
    this.reason = reason;
  }

  finish(): Buffer {
    const status = statusOf(this.reason);
    // What was written before stays for `take`; the last event is the end mark, and goes by itself.
    const before = this.take();
    this.tell(`response.${status}`, { response: this.response(status, this.used ?? NO_USAGE) });
    const last = this.take();
    this.put(before);
    return last;
  }

  fail({ message, code }: ErrorObject): Buffer {
    const response = { ...this.response("failed", null), error: { code, message } };
    this.tell("response.failed", { response });
    return this.take();
  }

  private get custom(): boolean {
    return this.block.kind === "tool_call" && this.block.custom;
  }

  private response(status: string, usage: Usage | null): Json {
    return responseOf(this.request, this.asked, {
      id: this.id,
      status,
      output: [...this.output],
      reason: this.reason,
      usage,
    });
  }

  private tell(type: string, fields: Json): void {
    this.event(type, JSON.stringify({ type, sequence_number: this.sequence, ...fields }));
    this.sequence += 1;
  }

  private place(): Json {
    return { output_index: this.output.length };
  }

  private inItem(): Json {
    return { item_id: this.item.id, output_index: this.output.length };
  }

  private part(): Json {
    return { ...this.inItem(), content_index: 0 };
  }

  private summary(): Json {
    return { ...this.inItem(), summary_index: 0 };
  }
}

const CALL_EVENTS = {
  function: {
    delta: "response.function_call_arguments.delta",
    done: "response.function_call_arguments.done",
    member: "arguments",
  },
  custom: {
    delta: "response.custom_tool_call_input.delta",
    done: "response.custom_tool_call_input.done",
    member: "input",
  },
} as const;

/** A whole answer for a responses client. */
export function writeResponsesAnswer(answer: Answer, usage: Usage, request: Json, asked: Asked): Json {
  const id = answerId("resp_", answer.id);
  const encrypted = wantsEncrypted(request);
  const tools = namedTools(request.tools);
  return responseOf(request, asked, {
    id,
    status: statusOf(answer.reason),
    output: answer.blocks.map((block, at) => finishedItem(block, id, at, tools, encrypted)),
    reason: answer.reason,
    usage,
  });
}

const statusOf = (reason: StopReason): "completed" | "incomplete" =>
  reason === "length" || reason === "filter" ? "incomplete" : "completed";

interface Told {
  readonly id: string;
  readonly status: string;
  readonly output: readonly Json[];
  readonly reason: StopReason;
  readonly usage: Usage | null;
}

/** The object that a response is, with what the client asked for repeated, as OpenAI does. */
function responseOf(request: Json, { publicModel, atS }: Asked, told: Told): Json {
  const { id, status, output, reason, usage } = told;
  return present({
    id,
    object: "response",
    created_at: atS,
    status,
    background: false,
    error: null,
    incomplete_details:
      status === "incomplete"
        ? { reason: reason === "filter" ? "content_filter" : "max_output_tokens" }
        : null,
    instructions: request.instructions ?? null,
    max_output_tokens: request.max_output_tokens ?? null,
    metadata: request.metadata ?? {},
    model: publicModel,
    access_programs: null,
    output,
    parallel_tool_calls: request.parallel_tool_calls ?? true,
    previous_response_id: null,
    prompt_cache_key: request.prompt_cache_key ?? undefined,
    reasoning: reasoningOf(request.reasoning),
    service_tier: "default",
    store: false,
    temperature: request.temperature ?? null,
    text: request.text ?? { format: { type: "text" } },
    tool_choice: request.tool_choice ?? "auto",
    tools: Array.isArray(request.tools) ? request.tools.map(toolOf) : [],
    top_p: request.top_p ?? null,
    truncation: "disabled",
    usage: usage === null ? undefined : writeResponsesUsage(usage),
  });
}

const reasoningOf = (reasoning: unknown): Json => ({ effort: null, summary: null, ...asObject(reasoning) });

/** What a client may leave out, an answer names. */
function toolOf(value: unknown): unknown {
  const tool = asObject(value);
  return tool?.type === "function" ? { parameters: NO_PARAMETERS, strict: null, ...tool } : value;
}

function writeResponsesUsage({ input, cacheRead, cacheWrite, output, reasoning }: Usage): Json {
  const prompt = input + cacheRead + cacheWrite;
  return {
    input_tokens: prompt,
    input_tokens_details: { cached_tokens: cacheRead, cache_write_tokens: cacheWrite },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: reasoning },
    total_tokens: prompt + output,
  };
}

function itemOf(
  block: OpenBlock,
  response: string,
  at: number,
  status: string,
  tools: readonly NamedTool[],
): Record<string, unknown> {
  const id = (prefix: string) => `${prefix}_${response.slice("resp_".length)}_${at}`;
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
  { block, text, logprobs, seal }: AnswerBlock,
  response: string,
  at: number,
  tools: readonly NamedTool[],
  encrypted: boolean,
): Json {
  const item = itemOf(block, response, at, "completed", tools);
  switch (block.kind) {
    case "text":
    case "refusal":
      return { ...item, content: [partOf(block.kind, text, logprobs)] };
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

const partOf = (kind: "text" | "refusal", text: string, logprobs: readonly unknown[]): Json =>
  kind === "text"
    ? { type: "output_text", text, annotations: [], logprobs }
    : { type: "refusal", refusal: text };

const summaryOf = (text: string): Json => ({ type: "summary_text", text });
