import type { ErrorObject } from "../../units/errors/refusal.ts";
import type { Json } from "../json/json.ts";
import { billedUsage } from "../passing/billed.ts";
import type { AnswerMetadata, Billed, Usage } from "../surface.ts";
import { writeChatUsage } from "../usage.ts";
import type { Citation, OpenBlock, StopReason } from "../vocabulary/answer-events.ts";
import { AnswerWriter, answerId, type CollectedAnswer } from "../vocabulary/answer-writer.ts";
import { citationOf } from "../vocabulary/citations.ts";
import type { Seal } from "../vocabulary/conversation.ts";
import { sealText } from "../vocabulary/seal.ts";

export class ChatWriter extends AnswerWriter {
  private head = "";
  /** The frame of a chunk, up to its delta. */
  private chunkHead = "";
  private id = "chatcmpl-gateway";
  private kind: OpenBlock["kind"] = "text";
  private custom = false;
  private calls = 0;
  private thoughts = 0;
  private thinks = false;

  constructor(
    private readonly metadata: AnswerMetadata,
    private readonly wantsUsage: boolean,
  ) {
    super();
  }

  start(id: string | null): void {
    this.id = answerId("chatcmpl-", id);
    this.head = this.headOf();
    this.chunkHead = `data: ${this.head}"choices":[{"index":0,"delta":`;
    this.chunk('{"role":"assistant","content":""}');
  }

  open(block: OpenBlock): void {
    this.kind = block.kind;
    if (block.kind !== "tool_call") return;
    const { id, name, custom } = block;
    this.custom = custom;
    const called = custom
      ? { type: "custom", custom: { name, input: "" } }
      : { type: "function", function: { name, arguments: "" } };
    this.chunk(JSON.stringify({ tool_calls: [{ index: this.calls, id, ...called }] }));
    this.calls += 1;
  }

  delta(text: string, logprobs?: readonly unknown[]): void {
    const words = JSON.stringify(text);
    switch (this.kind) {
      case "text":
        if (logprobs === undefined) this.chunk(`{"content":${words}}`);
        else
          this.chunk(
            `{"content":${words}}`,
            `,"logprobs":{"content":${JSON.stringify(logprobs)},"refusal":null}`,
          );
        return;
      case "refusal":
        this.chunk(`{"refusal":${words}}`);
        return;
      case "reasoning":
        this.thinks = true;
        // DeepSeek's name and OpenRouter's two: each is the only one that some clients read.
        this.chunk(
          `{"reasoning_content":${words},"reasoning":${words},"reasoning_details":[{"type":"reasoning.text","text":${words},"index":${this.thoughts}}]}`,
        );
        return;
      case "tool_call": {
        const index = this.calls - 1;
        const called = this.custom ? `"custom":{"input":${words}}` : `"function":{"arguments":${words}}`;
        this.chunk(`{"tool_calls":[{"index":${index},${called}}]}`);
      }
    }
  }

  override cite(citation: Citation): void {
    this.chunk(JSON.stringify({ annotations: [annotationOf(citation, 0)] }));
  }

  close(seal: Seal | null): void {
    if (this.kind !== "reasoning") return;
    if (seal !== null) {
      const detail = this.thinks
        ? { type: "reasoning.text", signature: sealText(seal), index: this.thoughts }
        : detailOf("", seal, this.thoughts);
      this.chunk(JSON.stringify({ reasoning_details: [detail] }));
    }
    this.thinks = false;
    this.thoughts += 1;
  }

  stop(reason: StopReason): void {
    this.reason = FINISH[reason];
  }

  private reason: string = FINISH.end;

  private finished = false;

  override finish(): void {
    this.finished = true;
    this.data(`${this.head}"choices":[{"index":0,"delta":{},"finish_reason":"${this.reason}"}]}`);
  }

  last(bill: Billed): Uint8Array {
    const usage = JSON.stringify(billedUsage(null, bill, writeChatUsage));
    if (this.wantsUsage) this.data(`${this.head}"choices":[],"usage":${usage}}`);
    this.data("[DONE]");
    return this.take();
  }

  fail(error: ErrorObject): Uint8Array {
    if (this.head === "") this.head = this.headOf();
    this.data(JSON.stringify({ error }));
    // The client has a reason already: only the end could not be recorded.
    if (!this.finished) this.data(`${this.head}"choices":[{"index":0,"delta":{},"finish_reason":"error"}]}`);
    return this.take();
  }

  private chunk(delta: string, more = ""): void {
    this.frame(this.chunkHead + delta + more + CHUNK_TAIL);
  }

  private headOf(): string {
    const { publicModel, atS } = this.metadata;
    const head = { id: this.id, object: "chat.completion.chunk", created: atS, model: publicModel };
    return `${JSON.stringify(head).slice(0, -1)},`;
  }
}

const CHUNK_TAIL = ',"finish_reason":null}]}\n\n';

const FINISH: Readonly<Record<StopReason, string>> = {
  end: "stop",
  sequence: "stop",
  tools: "tool_calls",
  length: "length",
  filter: "content_filter",
};

const annotationOf = (citation: Citation, offset: number): Json => ({
  type: "url_citation",
  url_citation: citationOf(citation, offset),
});

/** OpenRouter's form, which clients that keep thoughts send back. */
function detailOf(text: string, seal: Seal | null, index: number): Json {
  if (seal === null) return { type: "reasoning.text", text, index };
  return text === ""
    ? { type: "reasoning.encrypted", data: sealText(seal), index }
    : { type: "reasoning.text", text, signature: sealText(seal), index };
}

export function writeChatAnswer(answer: CollectedAnswer, usage: Usage, metadata: AnswerMetadata): Json {
  return {
    id: answerId("chatcmpl-", answer.id),
    object: "chat.completion",
    created: metadata.atS,
    model: metadata.publicModel,
    choices: [
      {
        index: 0,
        message: writeMessage(answer),
        logprobs: writeLogprobs(answer),
        finish_reason: FINISH[answer.reason],
      },
    ],
    usage: writeChatUsage(usage),
    // OpenRouter's client refuses an answer without it.
    system_fingerprint: null,
  };
}

function writeMessage({ blocks }: CollectedAnswer): Json {
  const textOf = (kind: OpenBlock["kind"]) => {
    const texts = blocks.filter(({ block }) => block.kind === kind).map(({ text }) => text);
    return texts.length === 0 ? null : texts.join("");
  };
  const details = blocks.flatMap(({ block, text, seal }) =>
    block.kind === "reasoning" ? [{ text, seal }] : [],
  );
  const thoughts = details.map(({ text, seal }, at) => detailOf(text, seal, at));
  const reasoning = textOf("reasoning") ?? undefined;
  const annotations: Json[] = [];
  let before = 0;
  for (const { block, text, citations } of blocks) {
    for (const citation of citations) annotations.push(annotationOf(citation, before));
    if (block.kind === "text") before += text.length;
  }
  const calls = blocks.flatMap(({ block, text }) => (block.kind === "tool_call" ? [{ ...block, text }] : []));
  return {
    role: "assistant",
    content: textOf("text"),
    refusal: textOf("refusal"),
    annotations: annotations.length > 0 ? annotations : undefined,
    reasoning_content: reasoning,
    reasoning,
    reasoning_details: thoughts.length > 0 ? thoughts : undefined,
    tool_calls:
      calls.length === 0
        ? undefined
        : calls.map(({ id, name, custom, text }) =>
            custom
              ? { id, type: "custom", custom: { name, input: text } }
              : { id, type: "function", function: { name, arguments: text } },
          ),
  };
}

function writeLogprobs({ blocks }: CollectedAnswer): Json | null {
  const content = blocks.flatMap(({ logprobs }) => logprobs);
  return content.length === 0 ? null : { content, refusal: null };
}
