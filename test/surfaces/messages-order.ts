import type { Frame, Loose, OrderMachine } from "./event-order.ts";

/**
 * Events of a message (docs.anthropic.com, "Streaming Messages", event flow): `message_start`; blocks one
 * after another, each a start, deltas of its own kind and a stop; `message_delta`; `message_stop`. Pings
 * anywhere. A thinking block's last delta is its signature.
 */
export class MessagesOrder implements OrderMachine {
  readonly broken: string[] = [];
  private phase: "before" | "blocks" | "delta" | "stopped" | "error" = "before";
  private readonly blocks: string[] = [];
  private open: { readonly type: string; signed: boolean; texts: string } | null = null;
  private reason: string | null = null;

  take({ event, data }: Frame): void {
    const value: Loose = JSON.parse(data);
    const { type } = value;
    if (event !== type) this.report(`an event called ${event} is of type ${type}`);
    if (this.phase === "stopped" || this.phase === "error") this.report(`${type} after the end`);
    if (type === "ping") return;
    if (type === "error") {
      this.phase = "error";
      return;
    }
    if (this.phase === "before" && type !== "message_start") this.report(`${type} before message_start`);
    switch (type) {
      case "message_start":
        return this.start(value.message);
      case "content_block_start":
        return this.startBlock(value);
      case "content_block_delta":
        return this.delta(value);
      case "content_block_stop":
        return this.stopBlock(value);
      case "message_delta":
        if (this.open !== null) this.report("message_delta inside a block");
        if (this.phase !== "blocks") this.report("a second message_delta");
        this.phase = "delta";
        this.reason = value.delta.stop_reason;
        return;
      case "message_stop":
        if (this.phase !== "delta") this.report("message_stop without message_delta");
        this.phase = "stopped";
        return;
      default:
        this.report(`an unknown event, ${type}`);
    }
  }

  end(): void {
    if (this.phase === "error") return;
    if (this.phase !== "stopped") this.report("no message_stop");
    if (this.reason === null) this.report("no stop_reason");
    const called = this.blocks.includes("tool_use");
    if (this.reason === "tool_use" && !called) this.report("stop_reason tool_use without a tool_use block");
    if (this.reason === "end_turn" && called) this.report("stop_reason end_turn after a tool_use block");
  }

  private start(message: Loose): void {
    if (this.phase !== "before") this.report("a second message_start");
    if (message.content.length > 0) this.report("message_start has content");
    if (message.stop_reason !== null) this.report("message_start has a stop_reason");
    this.phase = "blocks";
  }

  private startBlock({ index, content_block: block }: Loose): void {
    if (this.phase !== "blocks") this.report("a block outside the message");
    if (this.open !== null) this.report("a block begins inside another");
    if (index !== this.blocks.length) this.report(`block ${this.blocks.length} has index ${index}`);
    const early =
      block.type === "tool_use" ? Object.keys(block.input).length > 0 : block.text || block.thinking;
    if (early) this.report("a block begins with content");
    this.blocks.push(block.type);
    this.open = { type: block.type, signed: false, texts: "" };
  }

  private delta({ index, delta }: Loose): void {
    const { open } = this;
    if (open === null || index !== this.blocks.length - 1) return this.report("a delta outside its block");
    if (open.signed) this.report("a delta after the signature");
    if (!DELTAS[open.type]?.includes(delta.type)) this.report(`${delta.type} in a ${open.type} block`);
    if (delta.type === "signature_delta") open.signed = true;
    open.texts += delta.text ?? delta.thinking ?? delta.partial_json ?? "";
  }

  private stopBlock({ index }: Loose): void {
    if (this.open === null || index !== this.blocks.length - 1) this.report("a stop outside its block");
    else if (this.open.type === "thinking" && !this.open.signed) this.report("thoughts without a signature");
    this.open = null;
  }

  private report(rule: string): void {
    this.broken.push(rule);
  }
}

const DELTAS: Readonly<Record<string, readonly string[]>> = {
  text: ["text_delta", "citations_delta"],
  thinking: ["thinking_delta", "signature_delta"],
  redacted_thinking: [],
  tool_use: ["input_json_delta"],
};
