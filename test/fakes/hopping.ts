import type { HostAnswer, SseEvent } from "./transcripts.ts";

/** What one model of a host that falls back by itself did for an answer. */
export interface Hopped {
  /** Its canonical id; null: as the host may leave the requested model's out. */
  readonly model: string | null;
  readonly words: readonly string[];
  readonly input: number;
  readonly output: number;
  readonly cacheRead?: number;
  readonly cacheWrite?: number;
}

/**
 * An answer of a host that goes on by itself with the next model where one declines, before any words or behind some, as
 * @anthropic-ai/sdk 1.13.0 documents it: a `fallback` block at each hop, and what each model used in
 * `usage.iterations`. The last one ends the answer, or declines too.
 */
export function hopping(
  ran: readonly Hopped[],
  { requested, declines = false }: { readonly requested: string; readonly declines?: boolean },
): HostAnswer {
  const nameOf = ({ model }: Hopped) => model ?? requested;
  const blocks: object[] = [];
  const events: object[] = [];
  const first = ran.find(({ words }) => words.length > 0) ?? ran.at(-1)!;
  const last = ran.at(-1)!;
  const isFallback = ran.length > 1 || nameOf(last) !== requested;
  const add = (block: object, opened: object, deltas: readonly object[]) => {
    const index = blocks.push(block) - 1;
    events.push(
      { type: "content_block_start", index, content_block: opened },
      ...deltas.map((delta) => ({ type: "content_block_delta", index, delta })),
      { type: "content_block_stop", index },
    );
  };
  for (const [at, one] of ran.entries()) {
    if (at > 0) {
      const [from, to] = [{ model: nameOf(ran[at - 1]!) }, { model: nameOf(one) }];
      const hop = { type: "fallback", from, to, trigger: { type: "refusal", category: null } };
      add(hop, hop, []);
    }
    if (one.words.length === 0) continue;
    const deltas = one.words.map((text) => ({ type: "text_delta", text }));
    add({ type: "text", text: one.words.join("") }, { type: "text", text: "" }, deltas);
  }
  const stop = declines
    ? { stop_reason: "refusal", stop_sequence: null, stop_details: { type: "refusal", category: null } }
    : { stop_reason: "end_turn", stop_sequence: null };
  const usage = {
    ...usageOf(last),
    iterations: ran.map((one, at) => ({
      type: at === ran.length - 1 && isFallback && !declines ? "fallback_message" : "message",
      model: one.model,
      ...usageOf(one),
      cache_creation: null,
    })),
  };
  const message = { id: "msg_hops", type: "message", role: "assistant", model: nameOf(first) };
  const start = {
    ...message,
    content: [],
    stop_reason: null,
    usage: { ...usageOf(first), output_tokens: 1 },
  };
  return {
    // As the SDK has it: a whole message names who ended it.
    whole: { ...message, model: nameOf(last), content: blocks, ...stop, usage },
    events: [
      { type: "message_start", message: start },
      ...events,
      { type: "message_delta", delta: stop, usage },
      { type: "message_stop" },
    ].map((data): SseEvent => ({ event: (data as { type: string }).type, data: JSON.stringify(data) })),
  };
}

const usageOf = ({ input, output, cacheRead = 0, cacheWrite = 0 }: Hopped) => ({
  input_tokens: input,
  cache_read_input_tokens: cacheRead,
  cache_creation_input_tokens: cacheWrite,
  output_tokens: output,
});
