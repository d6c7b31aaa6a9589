import { ceilingOf, type ForcedTool, isSaid, list, record, type SimulatedAnswer, textsOf } from "./answer.ts";
import { openAiError, type SimulatedEvent, type SimulatedLanguage } from "./language.ts";

/** OpenAI, "Chat completions" and "Chat completion chunk". */
export const SIMULATED_CHAT: SimulatedLanguage = {
  path: "/v1/chat/completions",

  read(json) {
    const messages = list(json.messages);
    if (messages.length === 0) return "'messages' must be a non-empty array.";
    if (json.n !== undefined && json.n !== null && json.n !== 1)
      return "'n' must be 1: this host gives one answer.";
    return {
      model: String(json.model),
      stream: json.stream === true,
      maxOutputTokens: ceilingOf(json.max_completion_tokens) ?? ceilingOf(json.max_tokens),
      prompt: messages.flatMap((message) => textsOf(record(message).content)),
      lastWords: textsOf(record(messages.findLast(isSaid)).content).at(-1) ?? "",
      tool: forcedTool(json),
    };
  },

  whole(answer) {
    const { said } = answer;
    const message =
      said.kind === "text"
        ? { content: said.words.join("") }
        : {
            content: null,
            tool_calls: [{ ...toolCall(answer), ...called(said.name, said.pieces.join("")) }],
          };
    return {
      ...common(answer, "chat.completion"),
      choices: [
        {
          index: 0,
          message: { role: "assistant", refusal: null, ...message },
          logprobs: null,
          finish_reason: finishReason(answer),
        },
      ],
      usage: usage(answer),
    };
  },

  *events(answer, json) {
    const { said } = answer;
    const chunk = (delta: object, finish: string | null, paced: boolean): SimulatedEvent => ({
      event: null,
      data: {
        ...common(answer, "chat.completion.chunk"),
        choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }],
      },
      paced,
    });
    if (said.kind === "text") {
      yield chunk({ role: "assistant", content: "", refusal: null }, null, false);
      for (const content of said.words) yield chunk({ content }, null, true);
    } else {
      const first = { index: 0, ...toolCall(answer), ...called(said.name, "") };
      yield chunk({ role: "assistant", content: null, tool_calls: [first] }, null, false);
      for (const piece of said.pieces) {
        yield chunk({ tool_calls: [{ index: 0, function: { arguments: piece } }] }, null, true);
      }
    }
    yield chunk({}, finishReason(answer), false);
    if (record(json.stream_options).include_usage === true) {
      const data = { ...common(answer, "chat.completion.chunk"), choices: [], usage: usage(answer) };
      yield { event: null, data, paced: false };
    }
    yield { event: null, data: "[DONE]", paced: false };
  },

  error: openAiError,
};

function forcedTool(json: Readonly<Record<string, unknown>>): ForcedTool | null {
  const { tool_choice } = json;
  const tools = list(json.tools).map((tool) => record(record(tool).function));
  const wanted = record(record(tool_choice).function).name;
  const tool = tool_choice === "required" ? tools[0] : tools.find(({ name }) => name === wanted);
  if (tool === undefined || typeof tool.name !== "string") return null;
  return { name: tool.name, schema: tool.parameters ?? {} };
}

const toolCall = ({ id }: SimulatedAnswer) => ({ id: `call_${id}`, type: "function" });

const called = (name: string, args: string) => ({ function: { name, arguments: args } });

const common = ({ id, createdS, model }: SimulatedAnswer, object: string) => ({
  id: `chatcmpl-${id}`,
  object,
  created: createdS,
  model,
});

const finishReason = ({ cut, said }: SimulatedAnswer): string =>
  cut ? "length" : said.kind === "tool" ? "tool_calls" : "stop";

const usage = ({ inputTokens, outputTokens }: SimulatedAnswer) => ({
  prompt_tokens: inputTokens,
  completion_tokens: outputTokens,
  total_tokens: inputTokens + outputTokens,
  prompt_tokens_details: { cached_tokens: 0 },
  completion_tokens_details: { reasoning_tokens: 0 },
});
