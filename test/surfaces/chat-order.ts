import type { Frame, Loose, OrderMachine, OrderOptions } from "./event-order.ts";

/**
 * Chunks of a chat completion (platform.openai.com, "Chat completion chunk object"): each choice says its
 * role first and its reason to finish last, once; a tool call says its id and name first; usage comes in a
 * chunk of its own, if it was asked for; `[DONE]` ends it.
 */
export class ChatOrder implements OrderMachine {
  readonly broken: string[] = [];
  private readonly choices = new Map<number, Choice>();
  private head: Loose = null;
  private usages = 0;
  private ended: "no" | "done" | "error" = "no";
  private errors = 0;

  constructor(private readonly expected: OrderOptions) {}

  take({ event, data }: Frame): void {
    if (event !== null) this.report("an event has a name");
    if (this.ended !== "no") this.report("something follows the end");
    if (data === "[DONE]") {
      this.ended = "done";
      if (this.errors > 0) this.report("[DONE] after an error");
      return;
    }
    const chunk: Loose = JSON.parse(data);
    if (chunk.error !== undefined) {
      this.errors += 1;
      return;
    }
    this.sameHead(chunk);
    for (const choice of chunk.choices) this.takeChoice(choice);
    if ("usage" in chunk && chunk.usage !== null) this.takeUsage(chunk);
    else if (chunk.choices.length === 0) this.report("a chunk says nothing");
  }

  end(): void {
    if (this.errors > 0) {
      const isOver =
        this.choices.size > 0 && [...this.choices.values()].every(({ reason }) => reason !== null);
      if (!isOver) this.report('no chunk with finish_reason "error" after the error');
      return;
    }
    if (this.ended !== "done") this.report("no [DONE]");
    if (this.choices.size === 0) this.report("no choice");
    for (const [index, choice] of this.choices) this.finished(index, choice);
    if (this.expected.usage !== (this.usages === 1))
      this.report(`${this.usages} usages, asked: ${this.expected.usage}`);
  }

  private sameHead({ id, created, model }: Loose): void {
    const head = JSON.stringify({ id, created, model });
    if ((this.head ??= head) !== head) this.report("id, created or model changes");
  }

  private takeUsage(chunk: Loose): void {
    this.usages += 1;
    if (chunk.choices.length > 0) this.report("usage next to choices");
    for (const { reason } of this.choices.values())
      if (reason === null) this.report("usage before the end of a choice");
  }

  private takeChoice({ index, delta, finish_reason: reason }: Loose): void {
    let choice = this.choices.get(index);
    if (choice === undefined) {
      if (this.errors === 0 && delta.role !== "assistant")
        this.report("a choice does not begin with its role");
      this.choices.set(index, (choice = { calls: [], reason: null }));
    } else if (delta.role !== undefined) this.report("a role after the first chunk");
    if (choice.reason !== null) this.report("a choice goes on after its end");
    for (const call of delta.tool_calls ?? []) this.takeCall(choice, call);
    if (reason === null) return;
    choice.reason = reason;
    if (reason === "error") {
      if (this.errors === 0) this.report('finish_reason "error" without an error');
      this.ended = "error";
    }
  }

  private takeCall({ calls }: Choice, call: Loose): void {
    const words = call.function ?? call.custom ?? {};
    if (call.index === calls.length) {
      calls.push({ id: call.id });
      if (typeof call.id !== "string" || call.id === "") this.report("a tool call begins without an id");
      if (call.type !== "function" && call.type !== "custom")
        this.report("a tool call begins without a type");
      if (typeof words.name !== "string" || words.name === "")
        this.report("a tool call begins without a name");
      if (calls.filter(({ id }) => id === call.id).length > 1) this.report("two tool calls have one id");
      return;
    }
    if (call.index !== calls.length - 1) this.report("a tool call goes on after the next one began");
    if (call.id !== undefined || words.name !== undefined)
      this.report("a tool call says its id or name again");
  }

  private finished(index: number, { reason, calls }: Choice): void {
    if (reason === null) this.report(`choice ${index} has no finish_reason`);
    if (reason === "tool_calls" && calls.length === 0) this.report("finish_reason tool_calls without a call");
    if (reason === "stop" && calls.length > 0) this.report("finish_reason stop after a tool call");
  }

  private report(rule: string): void {
    this.broken.push(rule);
  }
}

interface Choice {
  readonly calls: { readonly id: unknown }[];
  reason: string | null;
}
