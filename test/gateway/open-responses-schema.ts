import Ajv, { type ErrorObject } from "ajv";

/**
 * What Open Responses (openresponses.org, 2026-04-24) says that answers hold, as far as its compliance tests look:
 * members are there and of their type, null only where it says so. Members beyond that are free.
 */
type Schema = Record<string, unknown>;

const text: Schema = { type: "string" };
const whole: Schema = { type: "integer" };
const amount: Schema = { type: "number" };
const flag: Schema = { type: "boolean" };
const listOf = (items: Schema): Schema => ({ type: "array", items });
const orNull = (schema: Schema): Schema => ({ anyOf: [schema, { type: "null" }] });
const oneOf = (...values: string[]): Schema => ({ enum: values });
const holding = (members: Record<string, Schema>, optional: Record<string, Schema> = {}): Schema => ({
  type: "object",
  required: Object.keys(members),
  properties: { ...members, ...optional },
});
const typed = (
  type: string,
  members: Record<string, Schema>,
  optional: Record<string, Schema> = {},
): Schema => holding({ type: { const: type }, ...members }, optional);

const STATUS = oneOf("in_progress", "completed", "incomplete");
const LOGPROB = { token: text, logprob: amount, bytes: listOf(whole) };
const LOGPROBS = listOf(holding({ ...LOGPROB, top_logprobs: listOf(holding(LOGPROB)) }));
const CITATION = typed("url_citation", { start_index: whole, end_index: whole, url: text, title: text });

const PART: Schema = {
  anyOf: [
    typed("output_text", { text, annotations: listOf(CITATION) }, { logprobs: LOGPROBS }),
    typed("refusal", { refusal: text }),
    typed("summary_text", { text }),
    typed("reasoning_text", { text }),
  ],
};

const ITEM: Schema = {
  anyOf: [
    typed("message", { id: text, status: STATUS, role: text, content: listOf(PART) }),
    typed("function_call", { id: text, call_id: text, name: text, arguments: text, status: STATUS }),
    typed("reasoning", { id: text, summary: listOf(PART) }, { encrypted_content: text }),
    typed("compaction", { id: text, encrypted_content: text }),
  ],
};

const USAGE = holding({
  input_tokens: whole,
  output_tokens: whole,
  total_tokens: whole,
  input_tokens_details: holding({ cached_tokens: whole }),
  output_tokens_details: holding({ reasoning_tokens: whole }),
});

const TOOL = typed("function", {
  name: text,
  description: orNull(text),
  parameters: orNull({ type: "object" }),
  strict: orNull(flag),
});

const RESPONSE = holding({
  id: text,
  object: { const: "response" },
  created_at: whole,
  completed_at: orNull(whole),
  status: text,
  incomplete_details: orNull(holding({ reason: text })),
  model: text,
  previous_response_id: orNull(text),
  instructions: orNull(text),
  output: listOf(ITEM),
  error: orNull(holding({ code: text, message: text })),
  tools: listOf(TOOL),
  tool_choice: { anyOf: [oneOf("none", "auto", "required"), holding({ type: text })] },
  truncation: oneOf("auto", "disabled"),
  parallel_tool_calls: flag,
  text: holding({ format: holding({ type: text }) }),
  top_p: amount,
  presence_penalty: amount,
  frequency_penalty: amount,
  top_logprobs: whole,
  temperature: amount,
  reasoning: orNull(holding({ effort: orNull(text), summary: orNull(text) })),
  usage: orNull(USAGE),
  max_output_tokens: orNull(whole),
  max_tool_calls: orNull(whole),
  store: flag,
  background: flag,
  service_tier: text,
  metadata: {},
  safety_identifier: orNull(text),
  prompt_cache_key: orNull(text),
});

const COMPACTION = holding({
  id: text,
  object: { const: "response.compaction" },
  output: listOf(ITEM),
  created_at: whole,
  usage: USAGE,
});

const inItem = { item_id: text, output_index: whole };
const inPart = { ...inItem, content_index: whole };
const inSummary = { ...inItem, summary_index: whole };

const EVENTS: Readonly<Record<string, Record<string, Schema>>> = {
  "response.created": { response: RESPONSE },
  "response.in_progress": { response: RESPONSE },
  "response.completed": { response: RESPONSE },
  "response.incomplete": { response: RESPONSE },
  "response.failed": { response: RESPONSE },
  "response.output_item.added": { output_index: whole, item: ITEM },
  "response.output_item.done": { output_index: whole, item: ITEM },
  "response.content_part.added": { ...inPart, part: PART },
  "response.content_part.done": { ...inPart, part: PART },
  "response.output_text.delta": { ...inPart, delta: text },
  "response.output_text.done": { ...inPart, text },
  "response.output_text.annotation.added": { ...inPart, annotation_index: whole, annotation: CITATION },
  "response.refusal.delta": { ...inPart, delta: text },
  "response.refusal.done": { ...inPart, refusal: text },
  "response.function_call_arguments.delta": { ...inItem, delta: text },
  "response.function_call_arguments.done": { ...inItem, arguments: text },
  "response.reasoning_summary_part.added": { ...inSummary, part: PART },
  "response.reasoning_summary_part.done": { ...inSummary, part: PART },
  "response.reasoning_summary_text.delta": { ...inSummary, delta: text },
  "response.reasoning_summary_text.done": { ...inSummary, text },
};

const ajv = new Ajv({ strict: false, allErrors: true });
const compiled = new Map<unknown, (value: unknown) => string[]>();

function problems(schema: Schema, value: unknown): string[] {
  const known = compiled.get(schema);
  if (known !== undefined) return known(value);
  const validate = ajv.compile(schema);
  const check = (one: unknown) => (validate(one) ? [] : (validate.errors ?? []).map(sentence));
  compiled.set(schema, check);
  return check(value);
}

const sentence = ({ instancePath, message }: ErrorObject): string => `${instancePath} ${message}`;

export const inResponse = (value: unknown): string[] => problems(RESPONSE, value);
export const inCompaction = (value: unknown): string[] => problems(COMPACTION, value);

const EVENT_SCHEMAS = new Map(
  Object.entries(EVENTS).map(([type, members]) => [
    type,
    typed(type, { sequence_number: whole, ...members }),
  ]),
);

export function inEvent(value: { type: string }): string[] {
  const schema = EVENT_SCHEMAS.get(value.type);
  return schema === undefined ? [`${value.type} is no event of Open Responses`] : problems(schema, value);
}
