import type { SurfaceName } from "../../catalog/catalog.ts";
import { membersOf } from "./parts.ts";

/** How a host is asked for a stream: its usage is asked for and told in any case. */
const stream_options = "include_usage";
/** How open models are told whether to think (vendor-words). */
const TEMPLATE = "enable_thinking thinking";
/** Of a JSON schema that an answer is to follow, in OpenAI's languages. */
const SCHEMA = "name description schema strict";

/**
 * What objects among a body's fields may hold where they are translated: how to think, to choose a tool, to
 * format an answer. By path; a member without a row of its own is not looked into. Anything else is left out
 * by name, as in a part (parts).
 */
export const SETTINGS: Readonly<Record<SurfaceName, ReadonlyMap<string, ReadonlySet<string>>>> = {
  "chat.completions": membersOf({
    stream_options,
    reasoning: "effort max_tokens enabled exclude",
    thinking: "type budget_tokens",
    chat_template_kwargs: TEMPLATE,
    tool_choice: "type function custom allowed_tools",
    "tool_choice.function": "name",
    "tool_choice.custom": "name",
    "tool_choice.allowed_tools": "mode tools",
    response_format: "type json_schema",
    "response_format.json_schema": SCHEMA,
  }),
  responses: membersOf({
    stream_options,
    reasoning: "effort summary generate_summary mode context",
    thinking: "type budget_tokens",
    chat_template_kwargs: TEMPLATE,
    text: "format verbosity",
    "text.format": `type ${SCHEMA}`,
    tool_choice: "type name namespace mode tools",
  }),
  messages: membersOf({
    stream_options,
    thinking: "type budget_tokens display",
    chat_template_kwargs: TEMPLATE,
    output_config: "effort format task_budget",
    "output_config.format": "type schema",
    output_format: "type schema",
    tool_choice: "type name disable_parallel_tool_use",
    metadata: "user_id",
  }),
};
