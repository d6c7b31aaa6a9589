import { NO_TOKENS } from "../../catalog/tokens.ts";
import { asObject, type Json } from "../../surfaces/json/json.ts";
import type { Usage } from "../../surfaces/surface.ts";
import type { AnswerEvents, OpenBlock } from "../../surfaces/vocabulary/answer-events.ts";
import type { Conversation, Tool, Turn } from "../../surfaces/vocabulary/conversation.ts";

/**
 * What the simulated host says: the caller's last words behind a greeting, or a call of the tool that the caller
 * forces. Its tokens are words, cut at `TOKEN_CHARACTERS`, and are counted the same way in prompts and answers, so
 * that the usage it reports is true.
 */
export class SimulatedAnswer {
  readonly usage: Usage;
  private readonly block: OpenBlock;
  private readonly words: readonly string[];
  /** The token ceiling ended it. */
  private readonly cut: boolean;

  constructor(
    conversation: Conversation,
    /** Unguessable part of its ids. */
    private readonly id: string,
    mostTokens: number,
  ) {
    const { turns, maxOutputTokens } = conversation;
    const last = turns.findLast(({ role }) => role === "user" || role === "tool");
    const lastWords = (last && textsOf(last).at(-1)) ?? "";
    const tool = forcedTool(conversation);
    this.block =
      tool === null
        ? { kind: "text" }
        : { kind: "tool_call", id: `call_${id}`, name: tool.name, custom: tool.kind === "custom" };
    const { words, cut } = firstWords(
      textOf(tool, lastWords),
      Math.min(maxOutputTokens ?? mostTokens, mostTokens),
    );
    this.words = words;
    this.cut = cut;
    const input = turns.flatMap(textsOf).reduce((sum, text) => sum + countWords(text), 0);
    this.usage = { ...NO_TOKENS, input, output: words.length };
  }

  /** A word at a time. */
  *writeTo(events: AnswerEvents, onStart = () => {}): Generator<void> {
    const { id, usage, block, words, cut } = this;
    events.start(id, { ...usage, output: 0 });
    events.open(block);
    onStart();
    for (const word of words) yield events.delta(word);
    events.close(null);
    events.stop(cut ? "length" : block.kind === "tool_call" ? "tools" : "end", null);
  }
}

const GREETING = "Hello from the simulated host! You said: ";
const TOKEN_CHARACTERS = 16;

const textsOf = ({ parts }: Turn): string[] =>
  parts.flatMap((part) => (part.kind === "text" ? [part.text] : []));

function forcedTool({ tools, toolChoice }: Conversation): Tool | null {
  if (toolChoice?.kind === "required") return tools[0] ?? null;
  return (toolChoice?.kind === "named" && tools.find(({ name }) => name === toolChoice.name)) || null;
}

function textOf(tool: Tool | null, lastWords: string): string {
  if (tool === null) return GREETING + (lastWords === "" ? "nothing at all." : lastWords);
  return tool.kind === "custom" ? lastWords : JSON.stringify(sample(tool.parameters, lastWords, 0));
}

/** By code point, so that no character is cut in two; spaces belong to the word that follows. */
const WORD = new RegExp(`\\s*\\S{1,${TOKEN_CHARACTERS}}|\\s+$`, "gu");

function firstWords(text: string, most: number): { words: string[]; cut: boolean } {
  const words: string[] = [];
  for (const [word] of text.matchAll(WORD)) {
    if (words.length === most) return { words, cut: true };
    words.push(word);
  }
  return { words, cut: false };
}

function countWords(text: string): number {
  let count = 0;
  for (const _ of text.matchAll(WORD)) count++;
  return count;
}

const SCHEMA_DEPTH_MAX = 8;
const SCHEMA_PROPERTIES_MAX = 64;

/** The smallest value that a JSON schema describes, with the caller's words where it wants a text. */
function sample(schema: unknown, words: string, depth: number): unknown {
  const rules = asObject(schema) ?? {};
  if (depth > SCHEMA_DEPTH_MAX) return null;
  if ("const" in rules) return rules.const;
  if (Array.isArray(rules.enum) && rules.enum.length > 0) return rules.enum[0];
  if (Array.isArray(rules.anyOf) && rules.anyOf.length > 0) return sample(rules.anyOf[0], words, depth + 1);
  switch (Array.isArray(rules.type) ? rules.type[0] : rules.type) {
    case "string":
      return words;
    case "number":
    case "integer":
      return typeof rules.minimum === "number" ? rules.minimum : 0;
    case "boolean":
      return false;
    case "null":
      return null;
    case "array":
      return [];
    default:
      return sampleObject(rules, words, depth);
  }
}

function sampleObject(rules: Json, words: string, depth: number): object {
  const properties = asObject(rules.properties) ?? {};
  const required = Array.isArray(rules.required) ? rules.required : Object.keys(properties);
  const entries = required
    .slice(0, SCHEMA_PROPERTIES_MAX)
    .map((name) => [String(name), sample(properties[String(name)], words, depth + 1)]);
  return Object.fromEntries(entries);
}
