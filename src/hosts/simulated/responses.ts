import { ceilingOf, type ForcedTool, isSaid, list, record, type SimulatedAnswer, textsOf } from "./answer.ts";
import { openAiError, type SimulatedEvent, type SimulatedLanguage } from "./language.ts";

/**
 * OpenAI, "Responses" and "Streaming events" of it. Keeps nothing: every request brings its whole history.
 */
export const SIMULATED_RESPONSES: SimulatedLanguage = {
  path: "/v1/responses",

  read(json) {
    const input = typeof json.input === "string" ? [{ role: "user", content: json.input }] : list(json.input);
    if (input.length === 0) return "'input' must be a text or a non-empty array.";
    if (typeof json.previous_response_id === "string") {
      return "'previous_response_id': this host keeps no responses. Send the whole conversation in 'input'.";
    }
    const heard = input.findLast((item) => {
      const { type = "message" } = record(item);
      return type === "message" ? isSaid(item) : String(type).endsWith("_call_output");
    });
    const wantsSummary = record(input.at(-1)).type === "compaction_trigger";
    return {
      model: String(json.model),
      stream: json.stream === true,
      maxOutputTokens: ceilingOf(json.max_output_tokens),
      prompt: [...textsOf(json.instructions), ...input.flatMap(itemTexts)],
      lastWords: itemTexts(heard).at(-1) ?? "",
      tool: wantsSummary ? null : forcedTool(json),
      wantsSummary,
    };
  },

  whole: (answer) => finished(answer),

  *events(answer) {
    const { said } = answer;
    const item_id = itemId(answer);
    let sequence_number = 0;
    const event = (type: string, fields: object, paced = false): SimulatedEvent => ({
      event: type,
      data: { type, sequence_number: sequence_number++, ...fields },
      paced,
    });
    const at = { item_id, output_index: 0 };
    const opening = { ...responseObject(answer), status: "in_progress" };
    yield event("response.created", { response: opening });
    yield event("response.in_progress", { response: opening });
    yield event("response.output_item.added", { output_index: 0, item: openedItem(answer) });
    if (answer.isSummary) {
      // It has no events of its own.
    } else if (said.kind === "text") {
      const part = { ...at, content_index: 0 };
      const text = said.words.join("");
      yield event("response.content_part.added", { ...part, part: outputText("") });
      for (const delta of said.words)
        yield event("response.output_text.delta", { ...part, delta, logprobs: [] }, true);
      yield event("response.output_text.done", { ...part, text, logprobs: [] });
      yield event("response.content_part.done", { ...part, part: outputText(text) });
    } else {
      const [kind, field] = said.freeform
        ? ["response.custom_tool_call_input", "input"]
        : ["response.function_call_arguments", "arguments"];
      for (const delta of said.pieces) yield event(`${kind}.delta`, { ...at, delta }, true);
      yield event(`${kind}.done`, { ...at, [field!]: said.pieces.join("") });
    }
    yield event("response.output_item.done", { output_index: 0, item: doneItem(answer) });
    yield event(answer.cut ? "response.incomplete" : "response.completed", { response: finished(answer) });
  },

  error: openAiError,
};

function itemTexts(item: unknown): string[] {
  const { content, output } = record(item);
  return [...textsOf(content), ...textsOf(output)];
}

function forcedTool(json: Readonly<Record<string, unknown>>): ForcedTool | null {
  const { tool_choice } = json;
  const tools = list(json.tools).map(record);
  const { name: wanted } = record(tool_choice);
  const tool = tool_choice === "required" ? tools[0] : tools.find(({ name }) => name === wanted);
  if (tool === undefined || typeof tool.name !== "string") return null;
  return { name: tool.name, schema: tool.type === "custom" ? null : (tool.parameters ?? {}) };
}

function itemId({ id, said, isSummary }: SimulatedAnswer): string {
  if (isSummary) return `cmp_${id}`;
  if (said.kind === "text") return `msg_${id}`;
  return said.freeform ? `ctc_${id}` : `fc_${id}`;
}

function openedItem(answer: SimulatedAnswer): object {
  const { said, id } = answer;
  if (answer.isSummary) return { id: itemId(answer), type: "compaction", encrypted_content: "" };
  const base = { id: itemId(answer), status: "in_progress" };
  if (said.kind === "text") return { ...base, type: "message", role: "assistant", content: [] };
  const call = { ...base, call_id: `call_${id}`, name: said.name };
  return said.freeform
    ? { ...call, type: "custom_tool_call", input: "" }
    : { ...call, type: "function_call", arguments: "" };
}

function doneItem(answer: SimulatedAnswer): object {
  const { said, cut } = answer;
  if (answer.isSummary && said.kind === "text")
    return { ...openedItem(answer), encrypted_content: said.words.join("") };
  const status = cut ? "incomplete" : "completed";
  const item = { ...openedItem(answer), status };
  if (said.kind === "text") return { ...item, content: [outputText(said.words.join(""))] };
  return { ...item, [said.freeform ? "input" : "arguments"]: said.pieces.join("") };
}

const outputText = (text: string) => ({ type: "output_text", text, annotations: [], logprobs: [] });

const finished = (answer: SimulatedAnswer): object => ({
  ...responseObject(answer),
  status: answer.cut ? "incomplete" : "completed",
  completed_at: answer.cut ? null : answer.createdS,
  incomplete_details: answer.cut ? { reason: "max_output_tokens" } : null,
  output: [doneItem(answer)],
  usage: {
    input_tokens: answer.inputTokens,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens: answer.outputTokens,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: answer.inputTokens + answer.outputTokens,
  },
});

const responseObject = ({ id, createdS, model }: SimulatedAnswer) => ({
  id: `resp_${id}`,
  object: "response",
  created_at: createdS,
  completed_at: null as number | null,
  background: false,
  error: null,
  incomplete_details: null,
  instructions: null,
  max_output_tokens: null,
  max_tool_calls: null,
  metadata: {},
  model,
  output: [] as object[],
  parallel_tool_calls: true,
  presence_penalty: 0,
  frequency_penalty: 0,
  previous_response_id: null,
  prompt_cache_key: null,
  reasoning: { effort: null, summary: null },
  safety_identifier: null,
  service_tier: "default",
  store: false,
  temperature: 1,
  text: { format: { type: "text" } },
  tool_choice: "auto",
  tools: [],
  top_logprobs: 0,
  top_p: 1,
  truncation: "disabled",
  usage: null as object | null,
});
