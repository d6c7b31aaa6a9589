import type { SurfaceName } from "../../catalog/catalog.ts";

/**
 * What messages, items and their parts may hold where they are translated: what a reader reads of them, and
 * the labels of an answer that is sent back, which mean nothing to a model. Anything else is left out by name:
 * most of it is what a host once answered, and would end a conversation that moves from one host to another.
 */
export const PARTS: Readonly<Record<SurfaceName, ReadonlyMap<string, ReadonlySet<string>>>> = {
  "chat.completions": membersOf({
    "messages[]":
      "role content name cache_control tool_call_id tool_calls refusal function_call audio reasoning_details reasoning_content reasoning",
    text: "type text cache_control",
    refusal: "type refusal",
    image_url: "type image_url cache_control",
    "image_url.image_url": "url detail",
    file: "type file cache_control",
    "file.file": "file_data file_id filename",
    "tool_calls[]": "type id function custom index",
    "tool_calls[].function": "name arguments",
    "tool_calls[].custom": "name input",
    "tools[]": "type function custom cache_control",
    "tools[].function": "name description parameters strict",
    "tools[].custom": "name description format",
  }),
  responses: membersOf({
    message: "type role content id status",
    reasoning: "type summary content encrypted_content id status",
    function_call: "type call_id name namespace arguments id status",
    custom_tool_call: "type call_id name namespace input id status",
    function_call_output: "type call_id output id status",
    custom_tool_call_output: "type call_id output id status",
    additional_tools: "type role tools id",
    compaction: "type encrypted_content id",
    compaction_trigger: "type id",
    input_text: "type text cache_control",
    output_text: "type text cache_control logprobs",
    text: "type text cache_control",
    refusal: "type refusal",
    input_image: "type image_url file_id detail cache_control",
    input_file: "type file_url file_data file_id filename cache_control",
    "tools[]":
      "type name description parameters strict format cache_control defer_loading allowed_callers async output_schema",
    namespace: "type name tools",
  }),
  messages: membersOf({
    "messages[]": "role content",
    text: "type text cache_control",
    image: "type source cache_control",
    document: "type source title context citations cache_control",
    search_result: "type title source content citations cache_control",
    source: "type media_type data url file_id content",
    tool_result: "type tool_use_id content is_error cache_control",
    thinking: "type thinking signature",
    redacted_thinking: "type data",
    tool_use: "type id name input cache_control",
    "tools[]":
      "type name description input_schema strict cache_control defer_loading eager_input_streaming input_examples allowed_callers",
  }),
};

/** Names of members by what they stand in, written as a list with spaces between. */
export function membersOf(kinds: Readonly<Record<string, string>>): ReadonlyMap<string, ReadonlySet<string>> {
  return new Map(Object.entries(kinds).map(([kind, members]) => [kind, new Set(members.split(" "))]));
}
