import type { Frame, Loose, OrderMachine } from "./event-order.ts";

/**
 * Events of a response (platform.openai.com, "Streaming events"): numbered from 0 without a gap; `created`,
 * `in_progress`; items, of which each is added empty, sent in parts and deltas, and repeated whole when it is
 * done; last the response with all its items.
 */
export class ResponsesOrder implements OrderMachine {
  readonly broken: string[] = [];
  private count = 0;
  private id: string | null = null;
  private readonly items = new Map<number, Item>();
  private readonly done: Loose[] = [];
  private last: string | null = null;

  take({ event, data }: Frame): void {
    const value: Loose = JSON.parse(data);
    const { type } = value;
    if (event !== type) this.report(`an event called ${event} is of type ${type}`);
    if (value.sequence_number !== this.count)
      this.report(`event ${this.count} has sequence_number ${value.sequence_number}`);
    if (this.last !== null) this.report(`${type} after ${this.last}`);
    if (this.count === 0 && type !== "response.created" && type !== "response.failed")
      this.report(`${type} comes first`);
    if (this.count === 1 && type !== "response.in_progress" && type !== "response.failed")
      this.report(`${type} comes second`);
    this.count += 1;
    if (value.response !== undefined) this.takeResponse(type, value.response);
    else if (type === "response.output_item.added") this.add(value);
    else if (type === "response.output_item.done") this.finishItem(value);
    else this.inside(type, value);
  }

  end(): void {
    if (this.last === null) this.report("no completed, incomplete or failed response");
  }

  private takeResponse(type: string, response: Loose): void {
    if ((this.id ??= response.id) !== response.id) this.report("the response's id changes");
    const status = type === "response.created" ? "in_progress" : type.slice("response.".length);
    if (response.status !== status) this.report(`${type} has status ${response.status}`);
    if (status === "in_progress") {
      if (response.output.length > 0) this.report(`${type} has output`);
      return;
    }
    this.last = type;
    if ((response.incomplete_details !== null) !== (status === "incomplete"))
      this.report("incomplete_details");
    if ((response.error !== null) !== (status === "failed"))
      this.report(`${type} has error ${response.error}`);
    if (status === "failed") return;
    if (response.usage === null || response.usage === undefined) this.report(`${type} has no usage`);
    if (this.items.size > 0) this.report(`${type} while an item is open`);
    if (!same(response.output, this.done)) this.report(`${type} does not repeat the items`);
  }

  private add({ output_index: index, item }: Loose): void {
    if (index !== this.items.size + this.done.length) this.report(`an item is added at ${index}`);
    const filled = item.content?.length || item.summary?.length || item.arguments || item.input;
    if (filled) this.report("an item is added with content");
    if (item.status !== undefined && item.status !== "in_progress")
      this.report(`an item is added as ${item.status}`);
    this.items.set(index, {
      id: item.id,
      type: item.type,
      parts: [],
      summaries: [],
      text: "",
      finished: false,
    });
  }

  private finishItem({ output_index: index, item }: Loose): void {
    const open = this.items.get(index);
    if (open === undefined) return this.report("an item is done that was not added");
    this.items.delete(index);
    this.done[index] = item;
    if (open.id !== item.id || open.type !== item.type) this.report("an item changes its id or type");
    if (item.status === "in_progress") this.report("a done item is in progress");
    for (const part of [...open.parts, ...open.summaries])
      if (!part.done) this.report("an item is done before its part");
    if (
      !same(
        item.content ?? [],
        open.parts.map(({ whole }) => whole),
      )
    )
      this.report("a done item has other parts");
    if (
      !same(
        item.summary ?? [],
        open.summaries.map(({ whole }) => whole),
      )
    )
      this.report("a done item has another summary");
    const call = item.arguments ?? item.input;
    if (call !== undefined && (!open.finished || call !== open.text))
      this.report("a done call has other words than its deltas");
  }

  private inside(type: string, value: Loose): void {
    const item = this.items.get(value.output_index);
    if (item === undefined) return this.report(`${type} outside an item`);
    if (item.id !== value.item_id) this.report(`${type} names another item`);
    const [what, how] = STEPS[type] ?? [];
    if (what === undefined) return this.report(`an unknown event, ${type}`);
    if (what === "call") return this.call(item, how!, value);
    const [parts, index] =
      what === "part" ? [item.parts, value.content_index] : [item.summaries, value.summary_index];
    if (how === "added") {
      if (index !== parts.length) this.report(`a part is added at ${index}`);
      if (wordsOf(value.part) !== "") this.report("a part is added with content");
      parts.push({ type: value.part.type, text: "", finished: false, done: false, whole: null });
      return;
    }
    const part = parts[index];
    if (part === undefined || part.done) return this.report(`${type} outside a part`);
    this.finish(part, type, how!, value);
  }

  private finish(part: Part, type: string, how: string, value: Loose): void {
    if (how !== "done" && part.finished) this.report(`${type} after the text was done`);
    if (how !== "done" && PART_OF[type.replace(/\.(delta|done)$/, "")] !== part.type)
      this.report(`${type} in ${part.type}`);
    switch (how) {
      case "delta":
        part.text += value.delta;
        return;
      case "finished":
        part.finished = true;
        if ((value.text ?? value.refusal) !== part.text)
          this.report(`${type} has another text than the deltas`);
        return;
      case "done":
        part.done = true;
        part.whole = value.part;
        if (!part.finished) this.report("a part is done before its text");
        if (wordsOf(value.part) !== part.text) this.report("a done part has another text than the deltas");
    }
  }

  private call(item: Item, how: string, value: Loose): void {
    if (item.finished) this.report("a call goes on after its end");
    if (how === "delta") item.text += value.delta;
    else {
      item.finished = true;
      if ((value.arguments ?? value.input) !== item.text)
        this.report("a call's words differ from its deltas");
    }
  }

  private report(rule: string): void {
    this.broken.push(rule);
  }
}

interface Item {
  readonly id: string;
  readonly type: string;
  readonly parts: Part[];
  readonly summaries: Part[];
  text: string;
  finished: boolean;
}

interface Part {
  readonly type: string;
  text: string;
  /** Its text is done. */
  finished: boolean;
  done: boolean;
  whole: Loose;
}

/** What an event is about, and what it does. */
const STEPS: Readonly<Record<string, readonly ["part" | "summary" | "call", string]>> = {
  "response.content_part.added": ["part", "added"],
  "response.output_text.delta": ["part", "delta"],
  "response.output_text.done": ["part", "finished"],
  "response.refusal.delta": ["part", "delta"],
  "response.refusal.done": ["part", "finished"],
  "response.content_part.done": ["part", "done"],
  "response.reasoning_summary_part.added": ["summary", "added"],
  "response.reasoning_summary_text.delta": ["summary", "delta"],
  "response.reasoning_summary_text.done": ["summary", "finished"],
  "response.reasoning_summary_part.done": ["summary", "done"],
  "response.function_call_arguments.delta": ["call", "delta"],
  "response.function_call_arguments.done": ["call", "finished"],
  "response.custom_tool_call_input.delta": ["call", "delta"],
  "response.custom_tool_call_input.done": ["call", "finished"],
};

const PART_OF: Readonly<Record<string, string>> = {
  "response.output_text": "output_text",
  "response.refusal": "refusal",
  "response.reasoning_summary_text": "summary_text",
};

const wordsOf = (part: Loose): string => part.text ?? part.refusal ?? "";

const same = (one: unknown, other: unknown): boolean => Bun.deepEquals(one, other);
