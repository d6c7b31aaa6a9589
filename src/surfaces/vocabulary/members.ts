import type { Json } from "../json/json.ts";
import type { CacheMark, JsonSchemaFormat, TextPart } from "./conversation.ts";

/** How an answer is to look, for a host; OpenAI's two languages want a name. */
export const writeSchema = ({ name, description, schema, strict }: JsonSchemaFormat): Json => ({
  name: name ?? "answer",
  description: description ?? undefined,
  schema,
  strict: strict ?? undefined,
});

/** The parameters of a function without any. */
export const NO_PARAMETERS = { type: "object", properties: {} } as const;

/** Text that somebody said. */
export const textPart = (text: string, cache: CacheMark = null): TextPart => ({ kind: "text", text, cache });

/** Members that OpenAI's two languages spell alike. */
export const OPENAI_MEMBERS = ["metadata", "prompt_cache_retention", "service_tier", "moderation"];
