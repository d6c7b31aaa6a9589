import { json, sse } from "../fakes/behaviours.ts";
import { type FakeHost, type FakeRequest, startFakeHost } from "../fakes/host.ts";
import type { SseEvent } from "../fakes/transcripts.ts";

/**
 * A host that does a task of two steps in its own language: it writes a note with the agent's shell, reads it
 * back, and ends when it has seen the note's text in a result. It answers in the exact form of its language,
 * streamed or whole as it is asked, and keeps what it was sent, so that the script can look into it.
 */
export interface ScriptedHost {
  readonly host: FakeHost;
  readonly language: "chat.completions" | "messages";
  /** Whether the note's text came back as a tool's result. */
  readonly sawNote: () => boolean;
  /** Has the task done once more. */
  begin(): void;
  /** What it was sent since then. */
  sent(): readonly FakeRequest[];
}

export const NOTE = "written by a model of the other family";
const WRITE = `printf '%s' '${NOTE}' > note.txt && echo written`;
const READ = "cat note.txt";
export const SIGNATURE = "c2lnbmVkIGJ5IHRoZSBob3N0";

export async function startScriptedHost(language: ScriptedHost["language"]): Promise<ScriptedHost> {
  let saw = false;
  let first = 0;
  const host = await startFakeHost((request) => {
    if (request.method !== "POST") return json({ data: [] });
    const body = request.json();
    const results = resultsIn(body, language);
    saw ||= results.some((text) => text.includes(NOTE));
    const call = saw ? null : results.some((text) => text.includes("written")) ? READ : WRITE;
    const tool = shellOf(body, language);
    const answer = call === null || tool === null ? DONE : { tool, command: call, n: results.length };
    const events = language === "messages" ? messagesEvents(answer) : chatEvents(answer);
    return body.stream === true ? sse(events) : json(wholeOf(language, answer));
  });
  const begin = () => {
    saw = false;
    first = host.requests.length;
  };
  const sent = () => host.requests.slice(first);
  return { host, language, sawNote: () => saw, begin, sent };
}

// biome-ignore lint/suspicious/noExplicitAny: whatever an agent sends is looked into.
type Loose = Record<string, any>;

const DONE = "The note is written and read.";

type Next = string | { readonly tool: ShellTool; readonly command: string; readonly n: number };

/** A tool that runs a command, whatever the agent calls it. */
export interface ShellTool {
  readonly name: string;
  readonly member: string;
  /** Takes the command as it is, as a list of words, or in a line of JavaScript, as Codex's own models do. */
  readonly as: "text" | "list" | "code";
}

export function shellOf(body: Loose, language: ScriptedHost["language"]): ShellTool | null {
  for (const tool of body.tools ?? []) {
    const { name, schema } =
      language === "messages"
        ? { name: tool.name, schema: tool.input_schema }
        : { name: tool.function?.name, schema: tool.function?.parameters };
    const members = schema?.properties ?? {};
    for (const member of ["command", "cmd"])
      if (members[member] !== undefined && /bash|shell|exec/i.test(name))
        return { name, member, as: members[member].type === "array" ? "list" : "text" };
    if (members.input !== undefined && /exec$/.test(name)) return { name, member: "input", as: "code" };
  }
  return null;
}

function resultsIn(body: Loose, language: ScriptedHost["language"]): string[] {
  const messages: Loose[] = body.messages ?? [];
  return language === "messages"
    ? messages
        .flatMap(({ content }) => (Array.isArray(content) ? content : []))
        .filter(({ type }) => type === "tool_result")
        .map(({ content }) => JSON.stringify(content))
    : messages.filter(({ role }) => role === "tool").map(({ content }) => JSON.stringify(content));
}

export const argumentsOf = ({ tool, command }: Omit<Exclude<Next, string>, "n">): string =>
  JSON.stringify({ [tool.member]: WRITTEN[tool.as](command) });

export const WRITTEN: Record<ShellTool["as"], (command: string) => string | string[]> = {
  text: (command) => command,
  list: (command) => ["bash", "-c", command],
  code: (command) => `text(await tools.exec_command({ cmd: ${JSON.stringify(command)} }));`,
};

const event = (name: string, data: Record<string, unknown>): SseEvent => ({
  event: name,
  data: JSON.stringify({ type: name, ...data }),
});

/** docs.anthropic.com, "Streaming Messages": a signed thought, then text or a call. */
function messagesEvents(next: Next): SseEvent[] {
  const thought = [
    event("content_block_start", {
      index: 0,
      content_block: { type: "thinking", thinking: "", signature: "" },
    }),
    event("content_block_delta", {
      index: 0,
      delta: { type: "thinking_delta", thinking: "One step at a time." },
    }),
    event("content_block_delta", { index: 0, delta: { type: "signature_delta", signature: SIGNATURE } }),
    event("content_block_stop", { index: 0 }),
  ];
  const content =
    typeof next === "string"
      ? [
          event("content_block_start", { index: 1, content_block: { type: "text", text: "" } }),
          event("content_block_delta", { index: 1, delta: { type: "text_delta", text: next } }),
        ]
      : [
          event("content_block_start", {
            index: 1,
            content_block: { type: "tool_use", id: `toolu_0${next.n}`, name: next.tool.name, input: {} },
          }),
          event("content_block_delta", {
            index: 1,
            delta: { type: "input_json_delta", partial_json: argumentsOf(next) },
          }),
        ];
  const usage = {
    input_tokens: 900,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: 0,
    output_tokens: 1,
  };
  return [
    event("message_start", {
      message: {
        id: "msg_01Scripted",
        type: "message",
        role: "assistant",
        model: "claude-scripted",
        content: [],
        stop_reason: null,
        stop_sequence: null,
        usage,
      },
    }),
    event("ping", {}),
    ...thought,
    ...content,
    event("content_block_stop", { index: 1 }),
    event("message_delta", {
      delta: { stop_reason: typeof next === "string" ? "end_turn" : "tool_use", stop_sequence: null },
      usage: { output_tokens: 40 },
    }),
    event("message_stop", {}),
  ];
}

/** platform.openai.com, "Chat completion chunk". */
function chatEvents(next: Next): SseEvent[] {
  const chunk = (choices: object[], more: object = {}): SseEvent => ({
    data: JSON.stringify({
      id: "chatcmpl-Scripted",
      object: "chat.completion.chunk",
      created: 1_763_000_000,
      model: "gpt-scripted",
      choices,
      ...more,
    }),
  });
  const delta = (delta: object, finish_reason: string | null = null) =>
    chunk([{ index: 0, delta, finish_reason }]);
  const content =
    typeof next === "string"
      ? [delta({ content: next })]
      : [
          delta({
            tool_calls: [
              {
                index: 0,
                id: `call_${next.n}`,
                type: "function",
                function: { name: next.tool.name, arguments: "" },
              },
            ],
          }),
          delta({ tool_calls: [{ index: 0, function: { arguments: argumentsOf(next) } }] }),
        ];
  return [
    delta({ role: "assistant", content: "" }),
    ...content,
    delta({}, typeof next === "string" ? "stop" : "tool_calls"),
    chunk([], { usage: { prompt_tokens: 900, completion_tokens: 40, total_tokens: 940 } }),
    { data: "[DONE]" },
  ];
}

function wholeOf(language: ScriptedHost["language"], next: Next): object {
  const done = typeof next === "string";
  if (language === "messages")
    return {
      id: "msg_01Whole",
      type: "message",
      role: "assistant",
      model: "claude-scripted",
      content: [
        { type: "thinking", thinking: "One step at a time.", signature: SIGNATURE },
        done
          ? { type: "text", text: next }
          : {
              type: "tool_use",
              id: `toolu_0${next.n}`,
              name: next.tool.name,
              input: JSON.parse(argumentsOf(next)),
            },
      ],
      stop_reason: done ? "end_turn" : "tool_use",
      stop_sequence: null,
      usage: { input_tokens: 900, output_tokens: 40 },
    };
  const call = done
    ? null
    : {
        id: `call_${next.n}`,
        type: "function",
        function: { name: next.tool.name, arguments: argumentsOf(next) },
      };
  return {
    id: "chatcmpl-Whole",
    object: "chat.completion",
    created: 1_763_000_000,
    model: "gpt-scripted",
    choices: [
      {
        index: 0,
        message: {
          role: "assistant",
          content: done ? next : null,
          refusal: null,
          ...(call === null ? {} : { tool_calls: [call] }),
        },
        finish_reason: done ? "stop" : "tool_calls",
      },
    ],
    usage: { prompt_tokens: 900, completion_tokens: 40, total_tokens: 940 },
  };
}

export const bodies = (host: ScriptedHost): Loose[] =>
  host
    .sent()
    .filter(({ method }: FakeRequest) => method === "POST")
    .map((request) => request.json());
