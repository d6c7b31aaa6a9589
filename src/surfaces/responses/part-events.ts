/** The events of a part of an item, or of a call: its text in deltas and whole, as its `member`, and what encloses it. */
export interface PartEvents {
  readonly delta: string;
  readonly done: string;
  readonly member: "text" | "refusal" | "arguments" | "input";
  /** Null for a call, whose text is not in a part. */
  readonly part: { readonly added: string; readonly done: string } | null;
}

export const CONTENT = { added: "response.content_part.added", done: "response.content_part.done" } as const;

const text = (delta: string, done: string): PartEvents => ({ delta, done, member: "text", part: CONTENT });

/** By the type of the part or call. */
export const PART_EVENTS = {
  output_text: text("response.output_text.delta", "response.output_text.done"),
  reasoning_text: text("response.reasoning_text.delta", "response.reasoning_text.done"),
  refusal: { ...text("response.refusal.delta", "response.refusal.done"), member: "refusal" },
  summary_text: {
    ...text("response.reasoning_summary_text.delta", "response.reasoning_summary_text.done"),
    part: {
      added: "response.reasoning_summary_part.added",
      done: "response.reasoning_summary_part.done",
    },
  },
  function_call: {
    delta: "response.function_call_arguments.delta",
    done: "response.function_call_arguments.done",
    member: "arguments",
    part: null,
  },
  custom_tool_call: {
    delta: "response.custom_tool_call_input.delta",
    done: "response.custom_tool_call_input.done",
    member: "input",
    part: null,
  },
} as const satisfies Record<string, PartEvents>;

/** The events of a part of an item's `content`; null for a part of another type. */
export const contentEvents = (type: unknown): PartEvents | null =>
  type === "output_text" || type === "reasoning_text" || type === "refusal" ? PART_EVENTS[type] : null;
