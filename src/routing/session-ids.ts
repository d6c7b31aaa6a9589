import { asObject, type Json, parseObject } from "../surfaces/json/json.ts";

/**
 * The session that a client says a request is a part of, by the first name that it has of this list: what is meant
 * for this, then threads and tasks, then sessions, which may hold several of them, then what only the body says.
 * Names of requests and traces (`x-client-request-id`, `x-litellm-trace-id`) and of people (`user`) are none. A hint,
 * chosen by the client.
 */
export function sessionOf(headers: Headers, json: Json): string | null {
  for (const name of HEADERS) {
    const session = headers.get(name);
    if (session === null || session === "") continue;
    // Agents below another share its session, and have prompts of their own.
    const agent = name === CLAUDE_CODE ? headers.get("x-claude-code-agent-id") : null;
    return agent === null ? session : `${session} ${agent}`;
  }
  return sessionIn(json);
}

const CLAUDE_CODE = "x-claude-code-session-id";

const HEADERS: readonly string[] = [
  // opencode, Kilo, pi
  "x-session-affinity",
  // Codex
  "thread-id",
  CLAUDE_CODE,
  "x-opencode-session",
  // Cline, Roo, Kilo, Amp, xAI's, older Codex
  "x-task-id",
  "x-roo-task-id",
  "x-kilocode-taskid",
  "x-amp-thread-id",
  "x-grok-conv-id",
  "conversation_id",
  // OpenRouter's; opencode and Codex; pi and older Codex; Goose; LiteLLM's, Qwen Code, Copilot, Helicone's, Open WebUI
  "x-session-id",
  "session-id",
  "session_id",
  "agent-session-id",
  "goose-session-id",
  "x-litellm-session-id",
  "x-qwen-code-session-id",
  "x-client-session-id",
  "helicone-session-id",
  "x-openwebui-chat-id",
];

function sessionIn(json: Json): string | null {
  const { session_id, metadata, client_metadata, prompt_cache_key } = json;
  const labels = asObject(metadata);
  const codex = asObject(client_metadata);
  return (
    textOf(session_id) ??
    sessionOfUser(labels?.user_id) ??
    textOf(labels?.session_id) ??
    textOf(labels?.cursorConversationId) ??
    textOf(codex?.thread_id) ??
    textOf(codex?.session_id) ??
    textOf(prompt_cache_key)
  );
}

/** Claude Code's: JSON with a session in it, and before that `user_<hash>_account_<id>_session_<id>`. */
function sessionOfUser(user: unknown): string | null {
  if (typeof user !== "string" || user.length > MAX_USER) return null;
  if (user.startsWith("{")) return textOf(parseObject(user)?.session_id);
  return SESSION.exec(user)?.[1] ?? null;
}

const MAX_USER = 1_024;
const SESSION = /_session_([\w-]+)$/;

const textOf = (value: unknown): string | null => (typeof value === "string" && value !== "" ? value : null);
