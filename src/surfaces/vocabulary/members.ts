import type { Json } from "../json/json.ts";
import type { CacheMark, JsonSchemaFormat, TextPart } from "./conversation.ts";
import type { ObjectReader } from "./object-reader.ts";

/** How an answer is to look, for a host; OpenAI's two languages want a name. */
export const writeSchema = ({ name, description, schema, strict }: JsonSchemaFormat): Json => ({
  name: name ?? "answer",
  description: description ?? undefined,
  schema,
  strict: strict ?? undefined,
});

/** The parameters of a function without any. */
export const NO_PARAMETERS = { type: "object", properties: {} } as const;

export const textPart = (text: string, cache: CacheMark = null): TextPart => ({ kind: "text", text, cache });

/** Content in OpenAI's two languages that hosts of other ones cannot take. */
export function refuseContent(part: ObjectReader): [] {
  if (part.type === "input_audio") part.cannot(null, "it takes no audio");
  else part.cannot("type", "the gateway does not know this kind of content");
  return [];
}

/** Members that OpenAI's two languages spell alike. */
export const OPENAI_MEMBERS = ["metadata", "prompt_cache_retention", "service_tier", "moderation"];
