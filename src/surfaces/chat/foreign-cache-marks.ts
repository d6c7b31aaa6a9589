import type { Quirks } from "../../catalog/quirks.ts";
import { contains } from "../json/bytes.ts";
import { asObject, type Json } from "../json/json.ts";

/**
 * Marks for the cache in messages of chat, as a host of chat takes them. Clients made for OpenRouter or LiteLLM send
 * Anthropic's `cache_control` to any model, which OpenAI and strict hosts refuse as an unknown parameter. A host that
 * matches at marks gets its own in their place, but on no answer; others get none.
 */
export function mayHoldForeignMarks(body: Uint8Array, quirks: Quirks): boolean {
  return foreignMarks(quirks).some((name) => contains(body, Buffer.from(`"${name}"`)));
}

type MarkName = "cache_control" | "prompt_cache_breakpoint";

function foreignMarks(quirks: Quirks): readonly MarkName[] {
  const { cacheControl, cacheMarks, coreFieldsOnly, maxCompletionTokens } = quirks;
  const isStrict = coreFieldsOnly === true || maxCompletionTokens === true || cacheMarks === true;
  return [
    ...(isStrict && cacheControl !== true ? (["cache_control"] as const) : []),
    ...(coreFieldsOnly === true && cacheMarks !== true ? (["prompt_cache_breakpoint"] as const) : []),
  ];
}

/**
 * The messages without such marks; the same array where there are none. A host that matches at marks gets its own instead;
 * the names of what is left out are added to `lost`.
 */
export function withoutForeignMarks(
  messages: readonly Json[],
  quirks: Quirks,
  lost: Set<string>,
): readonly Json[] {
  const names = foreignMarks(quirks);
  const fit = (object: Json, mayBeMarked: boolean): Json => {
    const foreign = names.filter((name) => asObject(object[name]) !== null);
    if (foreign.length === 0) return object;
    const rest = Object.fromEntries(
      Object.entries(object).filter(([name]) => !names.includes(name as MarkName)),
    );
    if (mayBeMarked && quirks.cacheMarks === true)
      return { prompt_cache_breakpoint: { mode: "explicit" }, ...rest };
    for (const name of foreign) lost.add(name);
    return rest;
  };
  const fitted = messages.map((message) => {
    const { content } = message;
    const unmarked = fit(message, false);
    if (!Array.isArray(content)) return unmarked;
    const parts = content.map((part: unknown) => {
      const object = asObject(part);
      return object === null ? part : fit(object, message.role !== "assistant");
    });
    return parts.every((part, at) => part === content[at]) ? unmarked : { ...unmarked, content: parts };
  });
  return fitted.every((message, at) => message === messages[at]) ? messages : fitted;
}
