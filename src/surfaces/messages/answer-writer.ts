import { NO_TOKENS } from "../../catalog/tokens.ts";
import type { ErrorObject } from "../../units/errors/refusal.ts";
import type { Json } from "../json/json.ts";
import { billedUsage } from "../passing/billed.ts";
import type { AnswerMetadata, Billed, Usage } from "../surface.ts";
import { writeMessagesUsage, writeMessageUsage } from "../usage.ts";
import type { OpenBlock, StopReason } from "../vocabulary/answer-events.ts";
import {
  type AnswerBlock,
  AnswerWriter,
  answerId,
  type CollectedAnswer,
} from "../vocabulary/answer-writer.ts";
import type { Seal } from "../vocabulary/conversation.ts";
import { sealText } from "../vocabulary/seal.ts";
import { REFUSAL, STOP_REASONS } from "./answer-reader.ts";
import { inputObject, toolId } from "./request-writer.ts";

export class MessagesWriter extends AnswerWriter {
  private index = -1;
  private block: OpenBlock | null = null;
  /** Thoughts are announced when there is something of them: without text they are another kind of block. */
  private announced = false;
  /** The frame of a delta of this block, up to its text. */
  private deltaHead = "";
  private reason: StopReason = "end";
  private sequence: string | null = null;
  private refused = false;

  constructor(
    private readonly metadata: AnswerMetadata,
    private readonly hostFamily: string,
    /** Sent at the start, until the host reports its own count. */
    private readonly promptEstimate: number,
  ) {
    super();
  }

  start(id: string | null, usage: Usage | null): void {
    const message = {
      ...messageOf(answerId("msg_", id), this.metadata),
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: writeMessageUsage(usage ?? { ...NO_TOKENS, input: this.promptEstimate }),
    };
    this.emit("message_start", { message });
  }

  open(block: OpenBlock): void {
    this.block = block;
    this.announced = false;
    if (block.kind === "refusal") this.refused = true;
    if (block.kind === "text" || block.kind === "refusal") {
      this.announce({ type: "text", text: "" });
    } else if (block.kind === "tool_call") {
      const { id, name } = block;
      this.announce({ type: "tool_use", id: toolId(id), name, input: {}, caller: { type: "direct" } });
      if (block.custom) this.piece(FREEFORM_HEAD);
    }
  }

  delta(text: string): void {
    if (!this.announced) this.announce({ type: "thinking", thinking: "", signature: "" });
    this.piece(isFreeform(this.block!) ? JSON.stringify(text).slice(1, -1) : text);
  }

  close(seal: Seal | null): void {
    if (this.block!.kind === "reasoning") {
      if (this.announced) this.sign(seal);
      else if (seal !== null) this.announce({ type: "redacted_thinking", data: sealText(seal) });
      else return;
    } else if (isFreeform(this.block!)) this.piece(FREEFORM_TAIL);
    this.emit("content_block_stop", { index: this.index });
  }

  stop(reason: StopReason, sequence: string | null): void {
    this.reason = reason;
    this.sequence = sequence;
  }

  last(bill: Billed): Uint8Array {
    const delta = {
      stop_reason: stopReason(this.reason, this.refused),
      stop_sequence: this.sequence,
      stop_details: null,
      container: null,
    };
    const usage = billedUsage(null, bill, writeMessagesUsage);
    this.emit("message_delta", { delta, usage });
    this.emit("message_stop", {});
    return this.take();
  }

  override ping(): void {
    this.emit("ping", {});
  }

  fail({ message, type, code, param }: ErrorObject): Uint8Array {
    this.emit("error", { error: { type, message, code, param } });
    return this.take();
  }

  private piece(text: string): void {
    this.frame(this.deltaHead + JSON.stringify(text) + DELTA_TAIL);
  }

  private announce(content: Json): void {
    this.announced = true;
    this.index += 1;
    this.emit("content_block_start", { index: this.index, content_block: content });
    const [type, member] = DELTAS[this.block!.kind];
    this.deltaHead = `event: content_block_delta\ndata: {"type":"content_block_delta","index":${this.index},"delta":{"type":"${type}","${member}":`;
  }

  /** Every thought is signed: an unsigned one could not be distinguished from a host's own when it comes back. */
  private sign(seal: Seal | null): void {
    const signature = signatureOf(seal, this.hostFamily);
    this.emit("content_block_delta", { index: this.index, delta: { type: "signature_delta", signature } });
  }

  private emit(type: string, members: Json): void {
    this.event(type, JSON.stringify({ type, ...members }));
  }
}

const DELTA_TAIL = "}}\n\n";

/** Anthropic's calls have an object as their input, so the text of a freeform call is a member of one. */
const isFreeform = (block: OpenBlock): boolean => block.kind === "tool_call" && block.custom;
const FREEFORM_HEAD = '{"input":"';
const FREEFORM_TAIL = '"}';

const DELTAS: Readonly<Record<OpenBlock["kind"], readonly [type: string, member: string]>> = {
  text: ["text_delta", "text"],
  refusal: ["text_delta", "text"],
  reasoning: ["thinking_delta", "thinking"],
  tool_call: ["input_json_delta", "partial_json"],
};

const signatureOf = (seal: Seal | null, family: string): string =>
  sealText(seal ?? { family, kind: "signature", data: "" });

const stopReason = (reason: StopReason, refused: boolean): string =>
  reason === "end" && refused ? REFUSAL : STOP_REASONS[reason];

const messageOf = (id: string, { publicModel }: AnswerMetadata): Json => ({
  id,
  type: "message",
  role: "assistant",
  model: publicModel,
  container: null,
  diagnostics: null,
  stop_details: null,
});

export function writeMessagesAnswer(
  answer: CollectedAnswer,
  usage: Usage,
  metadata: AnswerMetadata,
  hostFamily: string,
): Json {
  const refused = answer.blocks.some(({ block }) => block.kind === "refusal");
  return {
    ...messageOf(answerId("msg_", answer.id), metadata),
    content: answer.blocks.flatMap((block) => writeBlock(block, hostFamily)),
    stop_reason: stopReason(answer.reason, refused),
    stop_sequence: answer.sequence,
    usage: writeMessageUsage(usage),
  };
}

function writeBlock({ block, text, seal }: AnswerBlock, hostFamily: string): Json[] {
  switch (block.kind) {
    case "text":
    case "refusal":
      // Anthropic's answers have no `citations: null`, though its types do; Vercel's AI SDK refuses it.
      return [{ type: "text", text }];
    case "reasoning":
      if (text !== "")
        return [{ type: "thinking", thinking: text, signature: signatureOf(seal, hostFamily) }];
      return seal === null ? [] : [{ type: "redacted_thinking", data: sealText(seal) }];
    case "tool_call": {
      const { id, name, custom } = block;
      const input = custom ? { input: text } : inputObject(text);
      return [{ type: "tool_use", id: toolId(id), name, input, caller: { type: "direct" } }];
    }
  }
}
