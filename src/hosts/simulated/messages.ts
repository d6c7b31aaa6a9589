import { ceilingOf, type ForcedTool, isSaid, list, record, type SimulatedAnswer, textsOf } from "./answer.ts";
import type { SimulatedEvent, SimulatedLanguage } from "./language.ts";

/** Anthropic, "Messages" and "Streaming messages". */
export const SIMULATED_MESSAGES: SimulatedLanguage = {
  path: "/v1/messages",

  read(json) {
    const messages = list(json.messages);
    if (messages.length === 0) return "messages: at least one message is required";
    const maxOutputTokens = ceilingOf(json.max_tokens);
    if (maxOutputTokens === null) return "max_tokens: Field required";
    return {
      model: String(json.model),
      stream: json.stream === true,
      maxOutputTokens,
      prompt: [...textsOf(json.system), ...messages.flatMap((message) => textsOf(record(message).content))],
      lastWords: textsOf(record(messages.findLast(isSaid)).content).at(-1) ?? "",
      tool: forcedTool(json),
    };
  },

  whole(answer) {
    const { said } = answer;
    const block =
      said.kind === "text"
        ? { type: "text", text: said.words.join("") }
        : { ...toolUse(answer, said.name), input: inputOf(said.pieces, answer.cut) };
    return {
      ...messageObject(answer),
      content: [block],
      stop_reason: stopReason(answer),
      usage: usage(answer),
    };
  },

  *events(answer) {
    const { said } = answer;
    const event = (type: string, fields: object, paced = false): SimulatedEvent => ({
      event: type,
      data: { type, ...fields },
      paced,
    });
    const start = { ...messageObject(answer), usage: { ...usage(answer), output_tokens: 1 } };
    yield event("message_start", { message: start });
    const opened =
      said.kind === "text" ? { type: "text", text: "" } : { ...toolUse(answer, said.name), input: {} };
    yield event("content_block_start", { index: 0, content_block: opened });
    yield event("ping", {});
    for (const delta of deltas(answer)) yield event("content_block_delta", { index: 0, delta }, true);
    yield event("content_block_stop", { index: 0 });
    yield event("message_delta", {
      delta: { stop_reason: stopReason(answer), stop_sequence: null },
      usage: { output_tokens: answer.outputTokens },
    });
    yield event("message_stop", {});
  },

  error: (status, message) => ({
    type: "error",
    error: {
      type: status === 404 ? "not_found_error" : status >= 500 ? "api_error" : "invalid_request_error",
      message,
    },
  }),
};

function forcedTool(json: Readonly<Record<string, unknown>>): ForcedTool | null {
  const { type, name: wanted } = record(json.tool_choice);
  const tools = list(json.tools).map(record);
  const tool =
    type === "any" ? tools[0] : type === "tool" ? tools.find(({ name }) => name === wanted) : undefined;
  if (tool === undefined || typeof tool.name !== "string") return null;
  return { name: tool.name, schema: tool.input_schema ?? {} };
}

function* deltas({ said }: SimulatedAnswer): Generator<object> {
  if (said.kind === "text") for (const text of said.words) yield { type: "text_delta", text };
  else for (const partial_json of said.pieces) yield { type: "input_json_delta", partial_json };
}

/** Arguments that the ceiling cut short are no JSON any more. */
const inputOf = (pieces: readonly string[], cut: boolean): unknown =>
  cut ? {} : JSON.parse(pieces.join(""));

const toolUse = ({ id }: SimulatedAnswer, name: string) => ({ type: "tool_use", id: `toolu_${id}`, name });

const messageObject = ({ id, model }: SimulatedAnswer) => ({
  id: `msg_${id}`,
  type: "message",
  role: "assistant",
  model,
  content: [] as object[],
  stop_reason: null as string | null,
  stop_sequence: null,
});

const stopReason = ({ cut, said }: SimulatedAnswer): string =>
  cut ? "max_tokens" : said.kind === "tool" ? "tool_use" : "end_turn";

const usage = ({ inputTokens, outputTokens }: SimulatedAnswer) => ({
  input_tokens: inputTokens,
  cache_creation_input_tokens: 0,
  cache_read_input_tokens: 0,
  output_tokens: outputTokens,
});
