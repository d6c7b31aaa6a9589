import { SURFACES } from "../../src/surfaces/surfaces.ts";
import { json, sse, status } from "../fakes/behaviours.ts";
import { type FakeHost, startFakeHost } from "../fakes/host.ts";
import type { CacheUse } from "../fakes/prompt-cache.ts";
import { argumentsOf, type ShellTool, shellOf, WRITTEN } from "./scripted-host.ts";

/**
 * Hosts of the three languages that have a tool called so many times, and end when they have seen the last result. Each
 * call and its result say `step 7 done`. At `fullAt` they say that the context is nearly full, and a summary that they are
 * asked for says how far the loop is. With a cache they count what they read and write, and results are longer.
 */
export const startLoopHost = (
  calls: number,
  { fullAt = Number.POSITIVE_INFINITY, caching = null, midStream = () => {} }: LoopOptions = {},
): Promise<FakeHost> =>
  startFakeHost((request) => {
    if (request.method !== "POST") return json({ data: [] });
    const body = request.json();
    const language = LANGUAGES.find((one) => request.path.split("?")[0]!.endsWith(SURFACES[one].path))!;
    const text = request.text();
    const done = Math.max(0, ...[...text.matchAll(/step (\d+) done/g)].map(([, n]) => Number(n)));
    const tokens = done === fullAt && !text.includes(SUMMARY) ? FULL : 900;
    const use = caching?.take(body, language) ?? null;
    if (typeof use === "string") return status(400, {}, use);
    const whole = answerTo(body, language, { done, calls, tokens, isLong: caching !== null });
    if (use !== null) whole.usage = usageOf(use, language);
    if (body.stream !== true) return json(whole);
    const stream = SURFACES[language].synthesizeStream(Buffer.from(JSON.stringify(whole)));
    if (!(stream instanceof Uint8Array)) throw new Error(stream.message);
    return sse(eventsIn(Buffer.from(stream).toString()), {
      before: (n) => (n === 2 ? midStream() : undefined),
    });
  });

interface LoopOptions {
  readonly fullAt?: number;
  readonly caching?: Caching | null;
  /** Waited for after the first events of each stream. */
  readonly midStream?: () => unknown;
}

export const LANGUAGES = ["chat.completions", "messages", "responses"] as const;
export type Language = (typeof LANGUAGES)[number];

// biome-ignore lint/suspicious/noExplicitAny: whatever a client sends is looked into.
type Loose = Record<string, any>;

interface Progress {
  readonly done: number;
  readonly calls: number;
  readonly tokens: number;
  readonly isLong: boolean;
}

/** A host's prompt cache; a text says why a request is refused. */
interface Caching {
  take(body: Loose, language: Language): CacheUse | string;
}

function usageOf({ read, written, rest }: CacheUse, language: Language): Loose {
  const output = 40;
  if (language === "messages")
    return {
      input_tokens: rest,
      cache_read_input_tokens: read,
      cache_creation_input_tokens: written,
      output_tokens: output,
    };
  const input = read + written + rest;
  const details = { cached_tokens: read, cache_write_tokens: written };
  const total_tokens = input + output;
  return language === "responses"
    ? {
        input_tokens: input,
        input_tokens_details: details,
        output_tokens: output,
        output_tokens_details: { reasoning_tokens: 0 },
        total_tokens,
      }
    : { prompt_tokens: input, prompt_tokens_details: details, completion_tokens: output, total_tokens };
}

const TEXT = "All steps are done.";
const SUMMARY = "Summary of the work:";
const FULL = 8_000;

function answerTo(body: Loose, language: Language, { done, calls, tokens, isLong }: Progress): Loose {
  const last = JSON.stringify((body.messages ?? body.input).at(-1));
  if (last.includes("compaction_trigger"))
    return response(
      "resp_compact",
      [{ id: "cmp_1", type: "compaction", encrypted_content: `step ${done} done` }],
      tokens,
    );
  if (/Summarize this conversation|CONTEXT CHECKPOINT/.test(last))
    return answerOf(language, `${SUMMARY} step ${done} done.`, 900);
  const call = done >= calls ? null : callOf(body, language, done + 1, isLong);
  return call === null ? answerOf(language, TEXT, tokens) : called(language, call, done + 1, tokens);
}

interface Call {
  readonly name: string;
  readonly input: string;
  readonly custom: boolean;
  readonly more: Loose;
}

/** A client's own tool `step`, or an agent's shell. */
function callOf(body: Loose, language: Language, n: number, isLong: boolean): Call | null {
  const tools: Loose[] = [
    ...(body.tools ?? []),
    ...((body.input ?? []) as Loose[]).flatMap(({ tools }) => tools ?? []),
  ];
  const names = tools.map((tool) => tool.name ?? tool.function?.name);
  if (names.includes("step")) return { name: "step", input: JSON.stringify({ n }), custom: false, more: {} };
  const command = `${isLong ? "seq 1 500; " : ""}echo step ${n} done`;
  if (language !== "responses") {
    const tool = shellOf(body, language);
    return tool === null
      ? null
      : { name: tool.name, input: argumentsOf({ tool, command }), custom: false, more: {} };
  }
  for (const tool of tools.flatMap((one) =>
    one.type === "namespace" ? one.tools.map((inner: Loose) => ({ ...inner, namespace: one.name })) : [one],
  )) {
    const more = tool.namespace === undefined ? {} : { namespace: tool.namespace };
    if (tool.type === "custom" && tool.name === "exec")
      return { name: tool.name, input: WRITTEN.code(command) as string, custom: true, more };
    const members = tool.parameters?.properties ?? {};
    for (const member of ["command", "cmd"])
      if (members[member] !== undefined && /bash|shell|exec/i.test(tool.name)) {
        const shell: ShellTool = {
          name: tool.name,
          member,
          as: members[member].type === "array" ? "list" : "text",
        };
        return { name: tool.name, input: argumentsOf({ tool: shell, command }), custom: false, more };
      }
  }
  return null;
}

function called(language: Language, { name, input, custom, more }: Call, n: number, tokens: number): Loose {
  const id = `call_${n}`;
  switch (language) {
    case "chat.completions": {
      const call = { id, type: "function", function: { name, arguments: input } };
      return chat({ content: null, tool_calls: [call] }, "tool_calls", tokens);
    }
    case "messages":
      return message(
        `msg_${n}`,
        [{ type: "tool_use", id, name, input: JSON.parse(input) }],
        "tool_use",
        tokens,
      );
    case "responses": {
      const thought = { id: `rs_${n}`, type: "reasoning", summary: [], encrypted_content: "gAAAA" };
      const call = { status: "completed", call_id: id, name, ...more };
      return response(
        `resp_${n}`,
        [
          thought,
          custom
            ? { id: `ctc_${n}`, type: "custom_tool_call", ...call, input }
            : { id: `fc_${n}`, type: "function_call", ...call, arguments: input },
        ],
        tokens,
      );
    }
  }
}

function answerOf(language: Language, text: string, tokens: number): Loose {
  switch (language) {
    case "chat.completions":
      return chat({ content: text }, "stop", tokens);
    case "messages":
      return message("msg_end", [{ type: "text", text }], "end_turn", tokens);
    case "responses": {
      const content = [{ type: "output_text", text, annotations: [], logprobs: [] }];
      return response(
        "resp_end",
        [{ id: "msg_end", type: "message", status: "completed", role: "assistant", content }],
        tokens,
      );
    }
  }
}

const chat = (message: Loose, finish_reason: string, tokens: number): Loose => ({
  id: "chatcmpl-Loop",
  object: "chat.completion",
  created: 1_763_000_000,
  model: "loop",
  choices: [{ index: 0, message: { role: "assistant", refusal: null, ...message }, finish_reason }],
  usage: { prompt_tokens: tokens, completion_tokens: 40, total_tokens: tokens + 40 },
});

/** Claude Code takes answers of one id for parts of one. */
const message = (id: string, content: Loose[], stop_reason: string, tokens: number): Loose => ({
  id,
  type: "message",
  role: "assistant",
  model: "loop",
  content,
  stop_reason,
  stop_sequence: null,
  usage: { input_tokens: tokens, output_tokens: 40 },
});

const response = (id: string, output: Loose[], tokens: number): Loose => ({
  id,
  object: "response",
  created_at: 1_763_000_000,
  status: "completed",
  model: "loop",
  output,
  error: null,
  incomplete_details: null,
  instructions: null,
  metadata: {},
  parallel_tool_calls: true,
  temperature: 1,
  tool_choice: "auto",
  tools: [],
  top_p: 1,
  usage: {
    input_tokens: tokens,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens: 40,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: tokens + 40,
  },
});

const eventsIn = (stream: string) =>
  stream
    .split("\n\n")
    .filter((text) => text !== "")
    .map((text) => {
      const data = /^data: (.*)$/m.exec(text)![1]!;
      const event = /^event: (.*)$/m.exec(text)?.[1];
      return event === undefined ? { data } : { event, data };
    });
