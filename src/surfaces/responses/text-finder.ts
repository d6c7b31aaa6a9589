import { TextFinder } from "../passing/text-finder.ts";

/** In an event with a `delta` that the model wrote. */
class ResponsesTextFinder extends TextFinder {
  protected read(): boolean {
    const { cursor } = this;
    let isDelta = false;
    let item = 0;
    let part = 0;
    cursor.enterObject();
    while (cursor.nextMember()) {
      if (cursor.isNamed("delta")) this.readText(0);
      else if (cursor.isNamed("sequence_number")) this.readCount();
      else if (cursor.isNamed("output_index")) item = cursor.readCount();
      else if (cursor.isNamed("content_index") || cursor.isNamed("summary_index")) part = cursor.readCount();
      else if (cursor.isNamed("type")) {
        isDelta = this.isWritten();
        if (isDelta) cursor.skipExact();
        else cursor.giveUp();
      } else this.skipFree();
    }
    this.ofChannel(0, channelOf(item, part));
    return cursor.isDone && isDelta;
  }

  private isWritten(): boolean {
    for (const type of WRITTEN) if (this.cursor.isTheText(type)) return true;
    return false;
  }
}

export const RESPONSES_TEXTS = new ResponsesTextFinder();

/**
 * Events whose `delta` the model wrote. Audio and code of built-in tools are billed by the host's own report.
 */
export const WRITTEN: readonly string[] = [
  "response.output_text.delta",
  "response.reasoning_text.delta",
  "response.reasoning_summary_text.delta",
  "response.refusal.delta",
  "response.function_call_arguments.delta",
  "response.custom_tool_call_input.delta",
  "response.audio.transcript.delta",
  "response.code_interpreter_call_code.delta",
  "response.mcp_call_arguments.delta",
];

/** Of a part of an item. */
export const channelOf = (item: unknown, part: unknown): number =>
  (typeof item === "number" ? item : 0) * PARTS_OF_AN_ITEM + (typeof part === "number" ? part : 0);

const PARTS_OF_AN_ITEM = 1_024;
