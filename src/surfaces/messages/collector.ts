import { parseExactObject } from "../json/exact-json.ts";
import { asObject, asText, type MutableJson } from "../json/json.ts";
import type { Collector } from "../passing/judge.ts";
import { grow } from "../passing/merge-delta.ts";

export class MessagesCollector implements Collector {
  private message: MutableJson = {};
  private readonly blocks: MutableJson[] = [];
  /** JSON of a call's input, until its block ends. */
  private input = "";

  add(data: MutableJson): void {
    switch (data.type) {
      case "message_start":
        this.message = { ...asObject(data.message) };
        return;
      case "content_block_start":
        this.input = "";
        this.blocks.push({ ...asObject(data.content_block) });
        return;
      case "content_block_delta":
        this.addDelta(asObject(data.delta) ?? {});
        return;
      case "content_block_stop":
        this.endBlock();
        return;
      case "message_delta": {
        const { type: _type, delta, usage, ...rest } = data;
        const more = asObject(usage);
        const used = asObject(this.message.usage) ?? (more === null ? undefined : {});
        for (const [name, value] of Object.entries(more ?? {})) if (value !== null) used![name] = value;
        Object.assign(this.message, rest, asObject(delta), { usage: used });
      }
    }
  }

  whole(): MutableJson {
    return { ...this.message, content: this.blocks };
  }

  private addDelta({ type, ...delta }: MutableJson): void {
    const block = this.blocks.at(-1);
    if (block === undefined) return;
    if (type === "input_json_delta") {
      this.input += asText(delta.partial_json ?? "");
    } else if (type === "citations_delta") {
      if (Array.isArray(block.citations)) block.citations.push(delta.citation);
      else block.citations = [delta.citation];
    } else {
      grow(block, delta);
    }
  }

  private endBlock(): void {
    const block = this.blocks.at(-1);
    if (block === undefined || this.input === "") return;
    // The other is Anthropic's form for what is no JSON.
    block.input = parseExactObject(this.input) ?? { INVALID_JSON: this.input };
    this.input = "";
  }
}
