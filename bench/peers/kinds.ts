import type { SurfaceName } from "../../src/catalog/catalog.ts";
import type { Target } from "../load.ts";
import { PACES, type Subject } from "./peer.ts";

/** Kinds of streams next to plain chat: what the client speaks, what the host does, and how it pads its events. */
export interface Kind {
  readonly name: string;
  readonly client: SurfaceName;
  readonly host: SurfaceName;
  readonly padded: boolean;
}

const CHAT: SurfaceName = "chat.completions";

export const KINDS: readonly Kind[] = [
  { name: "chat, padded as OpenAI does", client: CHAT, host: CHAT, padded: true },
  { name: "Messages", client: "messages", host: "messages", padded: false },
  { name: "Responses", client: "responses", host: "responses", padded: false },
  { name: "Messages → chat", client: CHAT, host: "messages", padded: false },
  { name: "chat → Messages", client: "messages", host: CHAT, padded: false },
  { name: "chat → Responses", client: "responses", host: CHAT, padded: false },
];

export interface KindRequest {
  readonly target: Target;
  readonly body: string;
}

/** Null where the peer has no such streams. */
export function requestOf(
  { target, reaches, prefix }: Subject,
  kind: Kind,
  pace?: string,
): KindRequest | null {
  const { client, host, padded } = kind;
  const reached =
    reaches === undefined ? (client === CHAT && host === CHAT ? target : null) : reaches(client, host);
  if (reached === null) return null;
  const model = `${prefix}${hostPrefix(host)}${pace ?? (padded ? PACES.padded : PACES.steady)}`;
  const question = "What is the capital of Norway? Answer in one word.";
  const conversation =
    client === "responses"
      ? { max_output_tokens: 1_000, input: question }
      : { max_tokens: 1_000, messages: [{ role: "user", content: question }] };
  return { target: reached, body: JSON.stringify({ model, stream: true, ...conversation }) };
}

/** In front of a model's name, for peers that choose the host by it. */
export const hostPrefix = (host: SurfaceName): string => (host === CHAT ? "" : `${host}-`);

/** That the stream comes whole and ends as its language does; null when it does. */
export async function faultOf(request: KindRequest, { client }: Kind): Promise<string | null> {
  const { response, text } = await answerTo(request);
  const deltas = text.split('":" token"').length - 1;
  const isWhole = response.ok && deltas === DELTAS && text.includes(END_MARKS[client]);
  return isWhole ? null : `${response.status}, ${deltas} deltas: ${text.slice(0, 200)}`;
}

/** That a chat stream with a tool call comes whole; null when it does. */
export async function toolFaultOf(request: KindRequest): Promise<string | null> {
  const { response, text } = await answerTo(request);
  const deltas = text.split('" token"').length - 1;
  const isWhole =
    response.ok &&
    deltas === TOOL_DELTAS &&
    text.includes("edit_file") &&
    text.includes('"tool_calls"') &&
    text.includes(END_MARKS["chat.completions"]);
  return isWhole ? null : `${response.status}, ${deltas} deltas: ${text.slice(0, 200)}`;
}

async function answerTo({ target, body }: KindRequest): Promise<{ response: Response; text: string }> {
  const response = await fetch(`http://127.0.0.1:${target.port}${target.path}`, {
    method: "POST",
    headers: { ...target.headers, "content-type": "application/json" },
    body,
  });
  return { response, text: await response.text() };
}

const DELTAS = Number(PACES.steady.split("-")[2]);
/** One of them is the call's beginning. */
const TOOL_DELTAS = Number(PACES.agent.split("-")[2]) - 1;

const END_MARKS: Readonly<Record<SurfaceName, string>> = {
  "chat.completions": "data: [DONE]",
  messages: "event: message_stop",
  responses: "event: response.completed",
};
