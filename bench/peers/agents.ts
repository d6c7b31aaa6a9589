import type { SurfaceName } from "../../src/catalog/catalog.ts";
import { PACES } from "./peer.ts";

/**
 * What coding agents send: tools, a task, and turns of calls with their results. Conversations differ from each other,
 * and each has several turns, so that no peer gets the same bytes again and again.
 */
const SIZES = [
  { size: "0.2 kB", bytes: 200 },
  { size: "20 kB", bytes: 20_000 },
  { size: "200 kB", bytes: 200_000 },
  { size: "200 kB, window of 128k tokens", bytes: 200_000, pace: PACES.narrow },
  { size: "1 MB", bytes: 1_000_000 },
];
const OPEN = [1, 16, 64, 200];

export interface AgentLoad {
  readonly name: string;
  readonly pace: string;
  readonly host: SurfaceName;
  readonly bytes: number;
  readonly stream: boolean;
  /** Open at once. */
  readonly connections: number;
}

const WHOLE_ANSWERS = SIZES.flatMap(({ size, bytes, pace = PACES.burst }) =>
  OPEN.map(
    (connections): AgentLoad => ({
      name: `${size}, ${connections} open`,
      pace,
      host: "chat.completions",
      bytes,
      stream: false,
      connections,
    }),
  ),
);

/** 300 events each; two thirds carry the arguments of a tool call. */
const STREAMS = SIZES.filter(({ size }) => size === "20 kB" || size === "200 kB").flatMap(({ size, bytes }) =>
  (["chat.completions", "messages"] as const).map(
    (host): AgentLoad => ({
      name: `${size}, stream of ${host === "messages" ? "Messages → chat" : "chat"}`,
      pace: PACES.agent,
      host,
      bytes,
      stream: true,
      connections: 64,
    }),
  ),
);

export const AGENT_LOADS: readonly AgentLoad[] = [...WHOLE_ANSWERS, ...STREAMS];

const CONVERSATIONS = 4;
const TURNS = 4;

/** Bodies of chat completions, about so long. */
export function agentBodies(model: string, bytes: number, stream: boolean): readonly string[] {
  const bodies: string[] = [];
  for (let turn = 0; turn < TURNS; turn++)
    for (let conversation = 0; conversation < CONVERSATIONS; conversation++)
      bodies.push(bodyOf(model, Math.round(bytes * (0.94 + 0.04 * turn)), stream, conversation));
  return bodies;
}

function bodyOf(model: string, bytes: number, stream: boolean, conversation: number): string {
  const task = { role: "user", content: `Task ${conversation}: say which test fails.` };
  const head = { model, ...(stream ? { stream } : {}), max_tokens: stream ? 1_000 : 100 };
  if (bytes < SMALLEST_WITH_TOOLS) return JSON.stringify({ ...head, messages: [task] });
  const messages: object[] = [{ role: "system", content: prose(bytes / 10, conversation) }, task];
  const tools = TOOL_NAMES.map((name) => toolOf(name, bytes / 100));
  let left = bytes - JSON.stringify({ ...head, messages, tools }).length;
  for (let call = 0; left > 0; call++) {
    const id = `call_${conversation}_${call}`;
    const body = {
      name: TOOL_NAMES[call % TOOL_NAMES.length]!,
      arguments: `{"path":"src/part-${call}.ts"}`,
    };
    const turn = [
      { role: "assistant", content: null, tool_calls: [{ id, type: "function", function: body }] },
      { role: "tool", tool_call_id: id, content: source(Math.min(left, RESULT_BYTES), call) },
    ];
    messages.push(...turn);
    left -= JSON.stringify(turn).length;
  }
  return JSON.stringify({ ...head, tools, messages });
}

const SMALLEST_WITH_TOOLS = 1_000;
const RESULT_BYTES = 4_000;
const TOOL_NAMES = ["read_file", "edit_file", "search", "run", "list_files", "apply_patch"] as const;

const toolOf = (name: string, bytes: number): object => ({
  type: "function",
  function: {
    name,
    description: prose(bytes, name.length),
    parameters: {
      type: "object",
      properties: { path: { type: "string" }, text: { type: "string" } },
      required: ["path"],
    },
  },
});

const SENTENCES = [
  "Read a file before you change it, and keep the change as small as the task allows.",
  "Run the tests of the folder that you touched, and say which of them fail.",
  "Paths are relative to the root of the repository.",
];
const prose = (bytes: number, from: number): string => repeated(SENTENCES, bytes, from, " ");

/** With what JSON has to escape: line ends, quotes, tabs. */
const LINES = [
  "export const total = (rows: readonly Row[]): number =>",
  '\trows.reduce((sum, { value }) => sum + (value ?? 0), 0); // "null" counts as nothing',
  '\tif (!response.ok) throw new Error(response.status + ": \\"" + (await response.text()));',
  "}",
];
const source = (bytes: number, from: number): string => repeated(LINES, bytes, from, "\n");

function repeated(pieces: readonly string[], bytes: number, from: number, between: string): string {
  let text = "";
  for (let at = from; text.length < bytes; at++) text += `${pieces[at % pieces.length]}${between}`;
  return text.slice(0, bytes);
}
