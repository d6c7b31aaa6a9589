import type { Quirks } from "../../catalog/quirks.ts";
import { asObject, isPresent, type Json } from "../json/json.ts";

/**
 * Messages as a host takes them whose chat is stricter than OpenAI's. A client answers with what it was
 * given, by whichever host served it then: the thoughts, roles and ids of one host are refused by another
 * (Mistral: `extra_forbidden`, Groq and Cerebras: “property 'reasoning_content' is unsupported”, DeepSeek:
 * “unknown variant `developer`”, and of a list of texts “invalid type: sequence, expected a string”).
 */
export function fitMessages(messages: readonly Json[], quirks: Quirks): Fitted {
  const fitting = new Fitting(quirks);
  let changed = false;
  const fitted = messages.map((message) => {
    const fits = fitting.fit(message);
    changed ||= fits !== message;
    return fits;
  });
  return { messages: changed ? fitted : messages, changed, lost: fitting.lost };
}

export interface Fitted {
  readonly messages: readonly Json[];
  readonly changed: boolean;
  /** What was left out that says something. */
  readonly lost: Set<"reasoning" | "cache_control">;
}

/** Whether the host's chat takes less than OpenAI's. */
export function isStrict(quirks: Quirks): boolean {
  for (const quirk of STRICT) if (quirks[quirk] === true) return true;
  return false;
}

const STRICT = [
  "coreFieldsOnly",
  "strictMessages",
  "shortCallIds",
  "namesResults",
  "signsCalls",
  "plainContent",
] as const satisfies (keyof Quirks)[];

/** One conversation, in its order. */
class Fitting {
  readonly lost = new Set<"reasoning" | "cache_control">();
  private readonly shortIds = new Map<string, string>();
  /** The tool's name by the call's id. */
  private readonly names = new Map<unknown, unknown>();

  constructor(private readonly quirks: Quirks) {}

  fit(message: Json): Json {
    return this.quirks.plainContent === true ? this.joined(this.adapted(message)) : this.adapted(message);
  }

  private adapted(message: Json): Json {
    switch (message.role) {
      case "developer":
        return this.quirks.coreFieldsOnly === true ? { ...message, role: "system" } : message;
      case "assistant":
        return this.fitCalls(this.quirks.strictMessages === true ? this.plain(message) : message);
      case "tool":
        return this.fitResult(message);
      default:
        return message;
    }
  }

  /** A list of nothing but texts as one. */
  private joined(message: Json): Json {
    const { content } = message;
    if (!Array.isArray(content)) return message;
    const parts = content.map(asObject);
    if (!parts.every((part) => part?.type === "text" && typeof part.text === "string")) return message;
    if (parts.some((part) => isPresent(part?.cache_control))) this.lost.add("cache_control");
    return { ...message, content: parts.map((part) => part?.text).join("\n\n") };
  }

  /**
   * What only answers have: it says nothing, or is of no use to another host. A refusal is what the model
   * said.
   */
  private plain(message: Json): Json {
    if (!ANSWERED.some((name) => name in message)) return message;
    const plain = { ...message };
    for (const name of ANSWERED) delete plain[name];
    if (THOUGHTS.some((name) => isPresent(message[name]))) this.lost.add("reasoning");
    const { content, refusal } = message;
    if (!isPresent(content) && isPresent(refusal)) plain.content = refusal;
    return plain;
  }

  private fitCalls(message: Json): Json {
    const calls = message.tool_calls;
    if (!Array.isArray(calls)) return message;
    const fitted = calls.map((value: unknown, at) => {
      const call = asObject(value);
      return call === null ? value : this.fitCall(call, at === 0);
    });
    return fitted.every((call, at) => call === calls[at]) ? message : { ...message, tool_calls: fitted };
  }

  private fitCall(call: Json, isFirst: boolean): Json {
    const { signsCalls, strictMessages } = this.quirks;
    const { id, function: called, extra_content: extra, ...rest } = call;
    this.names.set(id, asObject(called)?.name);
    const short = this.idOf(id);
    // Gemini's, in which it keeps its signature.
    const kept = signsCalls === true ? (extra ?? (isFirst ? UNSIGNED : undefined)) : extra;
    const fits = strictMessages === true && signsCalls !== true ? undefined : kept;
    if (short === id && fits === extra) return call;
    return { ...rest, id: short, function: called, ...(fits === undefined ? {} : { extra_content: fits }) };
  }

  private fitResult(message: Json): Json {
    const { tool_call_id: id } = message;
    const short = this.idOf(id);
    const name = this.quirks.namesResults === true && !("name" in message) ? this.names.get(id) : undefined;
    if (short === id && name === undefined) return message;
    return { ...message, tool_call_id: short, ...(name === undefined ? {} : { name }) };
  }

  /**
   * Numbered in their order, so that the beginning of a conversation stays what it was and is found in the
   * host's cache.
   */
  private idOf(id: unknown): unknown {
    if (this.quirks.shortCallIds !== true || typeof id !== "string" || SHORT_ID.test(id)) return id;
    const next = () => `c${String(this.shortIds.size).padStart(8, "0")}`;
    return this.shortIds.getOrInsertComputed(id, next);
  }
}

const THOUGHTS = ["reasoning_content", "reasoning", "reasoning_details"];
const ANSWERED = [...THOUGHTS, "refusal", "annotations", "audio", "function_call"];

/**
 * Gemini refuses a turn whose first call is not signed. This is what it documents for those of another model
 * ("Thought signatures").
 */
const UNSIGNED = { google: { thought_signature: "skip_thought_signature_validator" } };

/** Mistral's: “must be a-z, A-Z, 0-9, with a length of 9”. */
const SHORT_ID = /^[a-zA-Z0-9]{9}$/;
