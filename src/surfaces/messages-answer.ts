import type { ErrorObject } from "../errors/refusal.ts";
import type { Answer, AnswerBlock, AnswerEvents, OpenBlock, StopReason } from "./answer-events.ts";
import { type AnswerReader, ENDED_EARLY, fault } from "./answer-reader.ts";
import { AnswerWriter, answerId, NO_USAGE } from "./answer-writer.ts";
import type { Seal } from "./conversation.ts";
import { errorOf } from "./host-error.ts";
import { asObject, dataObject } from "./judge.ts";
import { inputObject, toolId } from "./messages-request.ts";
import { sealText } from "./seal.ts";
import type { EventFields } from "./sse.ts";
import type { Asked, HostError, Usage } from "./surface.ts";
import { readAnthropicUsage } from "./usage.ts";

type Json = Readonly<Record<string, unknown>>;

/** A messages host's events, read (docs.anthropic.com, "Streaming Messages"). Its blocks come one after another. */
export class MessagesReader implements AnswerReader {
  private used: Usage | null = null;
  private open = false;
  private seal: Seal | null = null;
  /** A call whose input came with its start: hosts that do not stream it do so. */
  private wholeInput = "";
  private streamed = false;
  private stopped = false;

  constructor(
    private readonly events: AnswerEvents,
    private readonly family: string,
  ) {}

  read(event: EventFields): "more" | "ping" | "end" | HostError {
    if (event.data === null) return "ping";
    const data = dataObject(event);
    switch (data?.type) {
      case "ping":
        return "ping";
      case "message_start": {
        const message = asObject(data.message) ?? {};
        this.used = readAnthropicUsage(message.usage, null);
        this.events.start(typeof message.id === "string" ? message.id : null, this.used);
        return "more";
      }
      case "content_block_start":
        return this.start(asObject(data.content_block) ?? {});
      case "content_block_delta":
        this.more(asObject(data.delta) ?? {});
        return "more";
      case "content_block_stop":
        this.end();
        return "more";
      case "message_delta":
        this.used = readAnthropicUsage(data.usage, this.used);
        if (this.used !== null) this.events.usage(this.used);
        this.stop(asObject(data.delta) ?? {});
        return "more";
      case "message_stop":
        if (!this.stopped) this.events.stop("end", null);
        return "end";
      case "error":
        return errorOf(data, "an error without a message");
      default:
        return "more";
    }
  }

  close(): HostError {
    return ENDED_EARLY;
  }

  private start(block: Json): "more" | HostError {
    this.seal = null;
    this.wholeInput = "";
    this.streamed = false;
    switch (block.type) {
      case "text":
        this.begin({ kind: "text" }, block.text);
        return "more";
      case "thinking":
        this.begin({ kind: "reasoning" }, block.thinking);
        if (typeof block.signature === "string") this.sign(block.signature);
        return "more";
      case "redacted_thinking":
        this.begin({ kind: "reasoning" }, "");
        this.seal = { family: this.family, kind: "redacted", data: String(block.data ?? "") };
        return "more";
      case "tool_use": {
        this.begin({ kind: "tool_call", id: String(block.id), name: String(block.name), custom: false }, "");
        const input = asObject(block.input) ?? {};
        if (Object.keys(input).length > 0) this.wholeInput = JSON.stringify(input);
        return "more";
      }
      default:
        return fault(`the host sent content of an unknown type, ${String(block.type)}`);
    }
  }

  private begin(block: OpenBlock, text: unknown): void {
    if (this.open) this.end();
    this.open = true;
    this.events.open(block);
    if (typeof text === "string" && text !== "") this.events.delta(text);
  }

  private more(delta: Json): void {
    if (!this.open) return;
    if (typeof delta.signature === "string") this.sign(delta.signature);
    const text = delta.text ?? delta.thinking ?? delta.partial_json;
    if (typeof text !== "string" || text === "") return;
    this.streamed = true;
    this.events.delta(text);
  }

  private sign(signature: string): void {
    if (signature === "") return;
    const before = this.seal?.data ?? "";
    this.seal = { family: this.family, kind: "signature", data: before + signature };
  }

  private end(): void {
    if (!this.open) return;
    if (!this.streamed && this.wholeInput !== "") this.events.delta(this.wholeInput);
    this.open = false;
    this.events.close(this.seal);
  }

  private stop({ stop_reason: reason, stop_sequence: sequence }: Json): void {
    if (typeof reason !== "string") return;
    this.end();
    this.stopped = true;
    this.events.stop(REASONS[reason] ?? "end", typeof sequence === "string" ? sequence : null);
  }
}

const REASONS: Readonly<Record<string, StopReason>> = {
  end_turn: "end",
  stop_sequence: "sequence",
  tool_use: "tools",
  max_tokens: "length",
  model_context_window_exceeded: "length",
  refusal: "filter",
};

/** A whole answer of a messages host. */
export function readMessagesAnswer(json: Json, events: AnswerEvents, family: string): HostError | null {
  if (json.type === "error" || asObject(json.error) !== null)
    return errorOf(json, "an error without a message");
  if (!Array.isArray(json.content)) return fault("the answer has no content");
  const usage = readAnthropicUsage(json.usage, null);
  events.start(typeof json.id === "string" ? json.id : null, usage);
  for (const value of json.content) {
    const problem = tellBlock(asObject(value) ?? {}, events, family);
    if (problem !== null) return problem;
  }
  if (usage !== null) events.usage(usage);
  const { stop_reason: reason, stop_sequence: sequence } = json;
  events.stop(REASONS[String(reason)] ?? "end", typeof sequence === "string" ? sequence : null);
  return null;
}

function tellBlock(block: Json, events: AnswerEvents, family: string): HostError | null {
  const tell = (open: OpenBlock, text: unknown, seal: Seal | null = null): null => {
    events.open(open);
    if (typeof text === "string" && text !== "") events.delta(text);
    events.close(seal);
    return null;
  };
  switch (block.type) {
    case "text":
      return tell({ kind: "text" }, block.text);
    case "thinking": {
      const { signature } = block;
      const signed = typeof signature === "string" && signature !== "";
      return tell(
        { kind: "reasoning" },
        block.thinking,
        signed ? { family, kind: "signature", data: signature } : null,
      );
    }
    case "redacted_thinking":
      return tell({ kind: "reasoning" }, "", { family, kind: "redacted", data: String(block.data ?? "") });
    case "tool_use": {
      const call = {
        kind: "tool_call",
        id: String(block.id),
        name: String(block.name),
        custom: false,
      } as const;
      return tell(call, JSON.stringify(block.input ?? {}));
    }
    default:
      return fault(`the host sent content of an unknown type, ${String(block.type)}`);
  }
}

/** Events for a messages client. */
export class MessagesWriter extends AnswerWriter {
  private index = -1;
  private block: OpenBlock | null = null;
  /** Thoughts are announced when there is something of them: without text they are another kind of block. */
  private announced = false;
  private used: Usage | null = null;
  private reason: StopReason = "end";
  private sequence: string | null = null;
  private refused = false;

  constructor(
    private readonly asked: Asked,
    private readonly hostFamily: string,
    /** Told at the start, until the host reports its own count. */
    private readonly promptEstimate: number,
  ) {
    super();
  }

  start(id: string | null, usage: Usage | null): void {
    const message = {
      ...messageOf(answerId("msg_", id), this.asked),
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: writeMessagesUsage(usage ?? { ...NO_USAGE, input: this.promptEstimate }),
    };
    this.event("message_start", JSON.stringify({ type: "message_start", message }));
  }

  open(block: OpenBlock): void {
    this.block = block;
    this.announced = false;
    if (block.kind === "refusal") this.refused = true;
    if (block.kind === "text" || block.kind === "refusal") {
      this.announce({ type: "text", text: "", citations: null });
    } else if (block.kind === "tool_call") {
      const { id, name } = block;
      this.announce({ type: "tool_use", id: toolId(id), name, input: {}, caller: { type: "direct" } });
    }
  }

  delta(text: string): void {
    const kind = this.block!.kind;
    if (!this.announced) this.announce({ type: "thinking", thinking: "", signature: "" });
    const [type, member] = DELTAS[kind];
    this.event(
      "content_block_delta",
      `{"type":"content_block_delta","index":${this.index},"delta":{"type":"${type}","${member}":${JSON.stringify(text)}}}`,
    );
  }

  close(seal: Seal | null): void {
    if (this.block!.kind === "reasoning") {
      if (this.announced) this.sign(seal);
      else if (seal !== null) this.announce({ type: "redacted_thinking", data: sealText(seal) });
      else return;
    }
    this.event("content_block_stop", `{"type":"content_block_stop","index":${this.index}}`);
  }

  usage(usage: Usage): void {
    this.used = usage;
  }

  stop(reason: StopReason, sequence: string | null): void {
    this.reason = reason;
    this.sequence = sequence;
  }

  finish(): Buffer {
    const delta = {
      stop_reason: stopReason(this.reason, this.refused),
      stop_sequence: this.sequence,
      stop_details: null,
      container: null,
    };
    const { service_tier, speed, inference_geo, cache_creation, ...usage } = writeMessagesUsage(
      this.used ?? NO_USAGE,
    );
    this.event("message_delta", JSON.stringify({ type: "message_delta", delta, usage }));
    return MESSAGE_STOP;
  }

  override ping(): void {
    this.event("ping", '{"type":"ping"}');
  }

  fail({ message, type, code, param }: ErrorObject): Buffer {
    this.event("error", JSON.stringify({ type: "error", error: { type, message, code, param } }));
    return this.take();
  }

  private announce(content: Json): void {
    this.announced = true;
    this.index += 1;
    const start = { type: "content_block_start", index: this.index, content_block: content };
    this.event("content_block_start", JSON.stringify(start));
  }

  /** Every thought is signed: an unsigned one could not be told from a host's own when it comes back. */
  private sign(seal: Seal | null): void {
    const signature = signatureOf(seal, this.hostFamily);
    const delta = { type: "signature_delta", signature };
    this.event(
      "content_block_delta",
      JSON.stringify({ type: "content_block_delta", index: this.index, delta }),
    );
  }
}

const MESSAGE_STOP = Buffer.from('event: message_stop\ndata: {"type":"message_stop"}\n\n');

const DELTAS: Readonly<Record<OpenBlock["kind"], readonly [type: string, member: string]>> = {
  text: ["text_delta", "text"],
  refusal: ["text_delta", "text"],
  reasoning: ["thinking_delta", "thinking"],
  tool_call: ["input_json_delta", "partial_json"],
};

const signatureOf = (seal: Seal | null, family: string): string =>
  sealText(seal ?? { family, kind: "signature", data: "" });

function stopReason(reason: StopReason, refused: boolean): string {
  switch (reason) {
    case "tools":
      return "tool_use";
    case "length":
      return "max_tokens";
    case "sequence":
      return "stop_sequence";
    case "filter":
      return "refusal";
    case "end":
      return refused ? "refusal" : "end_turn";
  }
}

const messageOf = (id: string, { publicModel }: Asked): Json => ({
  id,
  type: "message",
  role: "assistant",
  model: publicModel,
  container: null,
  diagnostics: null,
  stop_details: null,
});

function writeMessagesUsage({
  input,
  cacheRead,
  cacheWrite,
  output,
  reasoning,
}: Usage): Record<string, unknown> {
  return {
    input_tokens: input,
    cache_creation_input_tokens: cacheWrite,
    cache_read_input_tokens: cacheRead,
    output_tokens: output,
    output_tokens_details: reasoning > 0 ? { thinking_tokens: reasoning } : null,
    server_tool_use: null,
    cache_creation: null,
    service_tier: null,
    inference_geo: null,
    speed: null,
  };
}

/** A whole answer for a messages client. */
export function writeMessagesAnswer(answer: Answer, usage: Usage, asked: Asked, hostFamily: string): Json {
  const refused = answer.blocks.some(({ block }) => block.kind === "refusal");
  return {
    ...messageOf(answerId("msg_", answer.id), asked),
    content: answer.blocks.flatMap((block) => writeBlock(block, hostFamily)),
    stop_reason: stopReason(answer.reason, refused),
    stop_sequence: answer.sequence,
    usage: writeMessagesUsage(usage),
  };
}

function writeBlock({ block, text, seal }: AnswerBlock, hostFamily: string): Json[] {
  switch (block.kind) {
    case "text":
    case "refusal":
      return [{ type: "text", text, citations: null }];
    case "reasoning":
      if (text !== "")
        return [{ type: "thinking", thinking: text, signature: signatureOf(seal, hostFamily) }];
      return seal === null ? [] : [{ type: "redacted_thinking", data: sealText(seal) }];
    case "tool_call": {
      const { id, name } = block;
      return [
        { type: "tool_use", id: toolId(id), name, input: inputObject(text), caller: { type: "direct" } },
      ];
    }
  }
}
