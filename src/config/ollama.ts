import type { Host, Model } from "../catalog/catalog.ts";
import { isModelId } from "../catalog/model-name.ts";
import type { QueriedHost } from "./hosts-from-environment.ts";

/**
 * Ollama serves what was pulled onto its machine, so it is asked at start. Its models cost nothing to call
 * and have no price: they are published on free routes, for the Open Tier, and are never sold. An operator
 * who wants to sell them lists them in the file with a price. With `fetch` null, the host is found but not
 * asked.
 */
export async function findOllama(
  env: Readonly<Record<string, string | undefined>>,
  fetch: typeof globalThis.fetch | null,
): Promise<QueriedHost | null> {
  const origin = ollamaOrigin(env[OLLAMA_ENV]);
  if (origin === null) return null;
  const host = ollamaHost(origin);
  const contextLength = Number(env.OLLAMA_CONTEXT_LENGTH) || CONTEXT_LENGTH;
  const names = fetch === null ? [] : await pulledModels(origin, fetch);
  return {
    host,
    env: OLLAMA_ENV,
    models: names.flatMap((name) => freeModel(name, host, contextLength) ?? []),
  };
}

const OLLAMA_ENV = "OLLAMA_HOST";
const OLLAMA_PORT = "11434";
/**
 * Ollama silently cuts longer prompts. Its server does not tell what it was started with, so this is the
 * smallest of its defaults; Ollama's own variable OLLAMA_CONTEXT_LENGTH overrides it.
 */
const CONTEXT_LENGTH = 4096;
const ANSWER_MS = 2_000;
const ANSWER_CHARACTERS_MAX = 4 * 1024 * 1024;
const MODELS_MAX = 500;

/**
 * Ollama's own reading of the variable: scheme and port may be missing, and a wildcard means this machine.
 */
export function ollamaOrigin(text: string | undefined): string | null {
  const trimmed = text?.trim() ?? "";
  if (trimmed === "") return null;
  const full = /^https?:\/\//.test(trimmed) ? trimmed : `http://${trimmed}`;
  if (!URL.canParse(full)) return null;
  const url = new URL(full);
  // The standard port disappears from a parsed address, so it is looked for in the text.
  const named = /:\d+\/?$/.test(full.replace(/^https?:\/\//, ""));
  if (!named && url.protocol === "http:" && url.pathname === "/") url.port = OLLAMA_PORT;
  if (url.hostname === "0.0.0.0" || url.hostname === "[::]") url.hostname = "127.0.0.1";
  return url.origin;
}

const ollamaHost = (origin: string): Host => ({
  id: "ollama",
  baseUrl: `${origin}/v1`,
  // Responses since 0.13.3, messages since 0.14: docs.ollama.com, "OpenAI compatibility", "Anthropic
  // compatibility".
  speaks: ["chat.completions", "responses", "messages"],
  apiKey: null,
  auth: "bearer",
  headers: {},
  onDisconnect: "cancel",
  // It passes over fields that it does not know, `max_completion_tokens` among them (ollama/ollama#7125).
  quirks: { coreFieldsOnly: true },
});

/** An Ollama that does not answer has no models now; a reload asks again. */
async function pulledModels(origin: string, fetch: typeof globalThis.fetch): Promise<string[]> {
  try {
    const signal = AbortSignal.timeout(ANSWER_MS);
    const reply = await fetch(`${origin}/api/tags`, { signal, redirect: "manual" });
    const text = await boundedText(reply);
    const { models } = reply.ok && text !== null ? (JSON.parse(text) as { models?: unknown }) : {};
    if (!Array.isArray(models)) return [];
    return models.slice(0, MODELS_MAX).flatMap((model: { name?: unknown } | null) => {
      return typeof model?.name === "string" ? [model.name] : [];
    });
  } catch {
    return [];
  }
}

async function boundedText(reply: Response): Promise<string | null> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of reply.body ?? []) {
    text += decoder.decode(chunk, { stream: true });
    if (text.length > ANSWER_CHARACTERS_MAX) return null;
  }
  return text + decoder.decode();
}

/**
 * `llama3.2:latest` is published as `ollama/llama3.2`, `hf.co/author/model:Q4` as
 * `ollama/hf.co-author-model:Q4`.
 */
function freeModel(name: string, host: Host, contextLength: number): Model | null {
  const id = `ollama/${name.replace(/:latest$/, "").replaceAll("/", "-")}`;
  if (!isModelId(id)) return null;
  return {
    id,
    name: `${name} (Ollama)`,
    contextLength,
    maxOutputTokens: contextLength,
    price: null,
    routes: [{ host, model: name, price: null, free: true }],
  };
}
