import type Anthropic from "@anthropic-ai/sdk";
import type OpenAI from "openai";
import type { SurfaceName } from "../../../src/catalog/catalog.ts";

/**
 * The same thing said in three languages. A client that says it in one must be understood, by a host of another,
 * as if it had been said in the host's own: so one row stands for nine pairings.
 */
export interface Exchange {
  readonly "chat.completions"?: Omit<OpenAI.ChatCompletionCreateParamsNonStreaming, "model">;
  readonly responses?: Omit<OpenAI.Responses.ResponseCreateParamsNonStreaming, "model">;
  readonly messages?: Omit<Anthropic.MessageCreateParamsNonStreaming, "model">;
  /** What a host receives from clients of other languages where that is not what its own would say. */
  readonly received?: Partial<Record<SurfaceName, object>>;
  /** The host answers with calls, or with JSON; with text when nothing is said. */
  readonly answer?: "calls" | "json";
  /** Fields that the answer's header names, by the client's language and the host's. */
  readonly omitted?: Readonly<Record<string, string>>;
}

const SCHEMA = { type: "object" as const, properties: { city: { type: "string" } }, required: ["city"] };
/** Anthropic insists that answers are closed; OpenAI does where it is strict. */
const ANSWER = { ...SCHEMA, additionalProperties: false };
const DESCRIPTION = "The weather in a city.";
const TOOLS = {
  chat: [
    {
      type: "function" as const,
      function: { name: "get_weather", description: DESCRIPTION, parameters: SCHEMA },
    },
  ],
  responses: [
    {
      type: "function" as const,
      name: "get_weather",
      description: DESCRIPTION,
      parameters: SCHEMA,
      strict: false,
    },
  ],
  messages: [{ name: "get_weather", description: DESCRIPTION, input_schema: SCHEMA }],
};
const OTHER_TOOL = {
  chat: {
    type: "function" as const,
    function: { name: "list_files", parameters: { type: "object", properties: {} } },
  },
  responses: {
    type: "function" as const,
    name: "list_files",
    parameters: { type: "object", properties: {} },
    strict: false,
  },
  messages: { name: "list_files", input_schema: { type: "object" as const, properties: {} } },
};

/** What a user says, alone. */
const question = (text: string) => ({
  chat: [{ role: "user" as const, content: text }],
  responses: [
    { type: "message" as const, role: "user" as const, content: [{ type: "input_text" as const, text }] },
  ],
  messages: [{ role: "user" as const, content: [{ type: "text" as const, text }] }],
});

const weather = question("How warm is it in Oslo?");

function choosing(
  chat: OpenAI.ChatCompletionToolChoiceOption,
  responses: OpenAI.Responses.ResponseCreateParams["tool_choice"] & {},
  messages: Anthropic.ToolChoice,
): Exchange {
  return {
    answer: "calls",
    "chat.completions": {
      messages: weather.chat,
      max_tokens: 500,
      tools: [...TOOLS.chat, OTHER_TOOL.chat],
      tool_choice: chat,
    },
    responses: {
      input: weather.responses,
      max_output_tokens: 500,
      tools: [...TOOLS.responses, OTHER_TOOL.responses],
      tool_choice: responses,
    },
    messages: {
      messages: weather.messages,
      max_tokens: 500,
      tools: [...TOOLS.messages, OTHER_TOOL.messages],
      tool_choice: messages,
    },
  };
}

const PNG =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";
const PDF = "JVBERi0xLjQKJcOkw7zDtsOfCjIgMCBvYmoKPDwvTGVuZ3RoIDMgMCBSPj4Kc3RyZWFtCg==";
const URL = "https://example.com/cat.jpg";
const GRAMMAR = { syntax: "lark" as const, definition: 'start: "*** Begin" /.+/' };

/** A conversation around the given part of the user's. */
function shown(
  chat: OpenAI.ChatCompletionContentPart,
  responses: OpenAI.Responses.ResponseInputContent,
  messages: Anthropic.ContentBlockParam,
): Exchange {
  return {
    "chat.completions": {
      max_tokens: 500,
      messages: [{ role: "user", content: [{ type: "text", text: "What is it?" }, chat] }],
    },
    responses: {
      max_output_tokens: 500,
      input: [
        { type: "message", role: "user", content: [{ type: "input_text", text: "What is it?" }, responses] },
      ],
    },
    messages: {
      max_tokens: 500,
      messages: [{ role: "user", content: [{ type: "text", text: "What is it?" }, messages] }],
    },
  };
}

export const EXCHANGES = {
  "a question with instructions and sampling": {
    "chat.completions": {
      messages: [{ role: "system", content: "Be brief." }, ...weather.chat],
      max_tokens: 500,
      temperature: 0.5,
    },
    responses: {
      input: [
        { type: "message", role: "system", content: [{ type: "input_text", text: "Be brief." }] },
        ...weather.responses,
      ],
      max_output_tokens: 500,
      temperature: 0.5,
    },
    messages: {
      system: [{ type: "text", text: "Be brief." }],
      messages: weather.messages,
      max_tokens: 500,
      // Newer packages leave them out of their types; older models take them.
      ...({ temperature: 0.5 } as object),
    },
  },
  "several turns": {
    "chat.completions": {
      max_tokens: 500,
      messages: [
        { role: "user", content: "One?" },
        { role: "assistant", content: "One." },
        { role: "user", content: "Two?" },
      ],
    },
    responses: {
      max_output_tokens: 500,
      input: [
        ...question("One?").responses,
        { type: "message", role: "assistant", content: "One." } as never,
        ...question("Two?").responses,
      ],
    },
    messages: {
      max_tokens: 500,
      messages: [
        ...question("One?").messages,
        { role: "assistant", content: [{ type: "text", text: "One." }] },
        ...question("Two?").messages,
      ],
    },
  },
  "instructions in the middle": {
    "chat.completions": {
      max_tokens: 500,
      messages: [
        { role: "system", content: "Be brief." },
        { role: "user", content: "One?" },
        { role: "system", content: "Now be kind." },
        { role: "user", content: "Two?" },
      ],
    },
    responses: {
      max_output_tokens: 500,
      input: [
        { type: "message", role: "system", content: [{ type: "input_text", text: "Be brief." }] },
        ...question("One?").responses,
        { type: "message", role: "system", content: [{ type: "input_text", text: "Now be kind." }] },
        ...question("Two?").responses,
      ],
    },
    messages: {
      max_tokens: 500,
      system: [{ type: "text", text: "Be brief." }],
      messages: [
        ...question("One?").messages,
        { role: "system", content: [{ type: "text", text: "Now be kind." }] } as never,
        ...question("Two?").messages,
      ],
    },
  },
  "the instructions of Responses": {
    responses: { instructions: "Be brief.", input: "Hello?", max_output_tokens: 500 },
    received: {
      "chat.completions": {
        messages: [
          { role: "system", content: "Be brief." },
          { role: "user", content: "Hello?" },
        ],
      },
      messages: { system: [{ type: "text", text: "Be brief." }], messages: question("Hello?").messages },
    },
  },
  "two calls, their results, one of them an error": {
    "chat.completions": {
      max_tokens: 500,
      tools: TOOLS.chat,
      messages: [
        ...weather.chat,
        {
          role: "assistant",
          content: "Let me look.",
          tool_calls: [
            {
              id: "call_1",
              type: "function",
              function: { name: "get_weather", arguments: '{"city":"Oslo"}' },
            },
            {
              id: "call_2",
              type: "function",
              function: { name: "get_weather", arguments: '{"city":"Bergen"}' },
            },
          ],
        },
        { role: "tool", tool_call_id: "call_1", content: "4 °C" },
        { role: "tool", tool_call_id: "call_2", content: "no such city" },
        { role: "user", content: "And now?" },
      ],
    },
    responses: {
      max_output_tokens: 500,
      tools: TOOLS.responses,
      input: [
        ...weather.responses,
        { type: "message", role: "assistant", content: "Let me look." } as never,
        { type: "function_call", call_id: "call_1", name: "get_weather", arguments: '{"city":"Oslo"}' },
        { type: "function_call", call_id: "call_2", name: "get_weather", arguments: '{"city":"Bergen"}' },
        { type: "function_call_output", call_id: "call_1", output: "4 °C" },
        { type: "function_call_output", call_id: "call_2", output: "no such city" },
        ...question("And now?").responses,
      ],
    },
    messages: {
      max_tokens: 500,
      tools: TOOLS.messages,
      messages: [
        ...weather.messages,
        {
          role: "assistant",
          content: [
            { type: "text", text: "Let me look." },
            { type: "tool_use", id: "call_1", name: "get_weather", input: { city: "Oslo" } },
            { type: "tool_use", id: "call_2", name: "get_weather", input: { city: "Bergen" } },
          ],
        },
        {
          role: "user",
          content: [
            { type: "tool_result", tool_use_id: "call_1", content: "4 °C" },
            { type: "tool_result", tool_use_id: "call_2", content: "no such city", is_error: true },
            { type: "text", text: "And now?" },
          ],
        },
      ],
    },
    received: {
      messages: {
        messages: [
          ...weather.messages,
          {
            role: "assistant",
            content: [
              { type: "text", text: "Let me look." },
              { type: "tool_use", id: "call_1", name: "get_weather", input: { city: "Oslo" } },
              { type: "tool_use", id: "call_2", name: "get_weather", input: { city: "Bergen" } },
            ],
          },
          {
            role: "user",
            content: [
              { type: "tool_result", tool_use_id: "call_1", content: "4 °C" },
              { type: "tool_result", tool_use_id: "call_2", content: "no such city" },
              { type: "text", text: "And now?" },
            ],
          },
        ],
      },
    },
    omitted: {
      "messages on chat.completions": "tool_result.is_error",
      "messages on responses": "tool_result.is_error",
    },
  },
  "a call whose id other languages do not allow": {
    "chat.completions": {
      max_tokens: 500,
      tools: TOOLS.chat,
      messages: [
        ...weather.chat,
        {
          role: "assistant",
          content: null,
          tool_calls: [
            {
              id: "functions.get_weather:0",
              type: "function",
              function: { name: "get_weather", arguments: '{"city":"Oslo"}' },
            },
          ],
        },
        { role: "tool", tool_call_id: "functions.get_weather:0", content: "4 °C" },
      ],
    },
    received: {
      responses: {
        input: [
          ...weather.responses,
          {
            type: "function_call",
            call_id: "functions.get_weather:0",
            name: "get_weather",
            arguments: '{"city":"Oslo"}',
          },
          { type: "function_call_output", call_id: "functions.get_weather:0", output: "4 °C" },
        ],
      },
      messages: {
        messages: [
          ...weather.messages,
          {
            role: "assistant",
            content: [
              {
                type: "tool_use",
                id: "functions_get_weather_0",
                name: "get_weather",
                input: { city: "Oslo" },
              },
            ],
          },
          {
            role: "user",
            content: [{ type: "tool_result", tool_use_id: "functions_get_weather_0", content: "4 °C" }],
          },
        ],
      },
    },
  },
  "tools: any, or none": choosing("auto", "auto", { type: "auto" }),
  "tools: none": choosing("none", "none", { type: "none" }),
  "tools: at least one": choosing("required", "required", { type: "any" }),
  "tools: this one": choosing(
    { type: "function", function: { name: "get_weather" } },
    { type: "function", name: "get_weather" },
    { type: "tool", name: "get_weather" },
  ),
  "tools: one of these": {
    "chat.completions": {
      messages: weather.chat,
      max_tokens: 500,
      tools: [...TOOLS.chat, OTHER_TOOL.chat],
      tool_choice: {
        type: "allowed_tools",
        allowed_tools: { mode: "required", tools: [{ type: "function", function: { name: "get_weather" } }] },
      },
    },
    responses: {
      input: weather.responses,
      max_output_tokens: 500,
      tools: [...TOOLS.responses, OTHER_TOOL.responses],
      tool_choice: {
        type: "allowed_tools",
        mode: "required",
        tools: [{ type: "function", name: "get_weather" }],
      },
    },
    received: { messages: { tools: TOOLS.messages, tool_choice: { type: "any" } } },
  },
  "tools: one at a time": {
    "chat.completions": {
      messages: weather.chat,
      max_tokens: 500,
      tools: TOOLS.chat,
      tool_choice: "auto",
      parallel_tool_calls: false,
    },
    responses: {
      input: weather.responses,
      max_output_tokens: 500,
      tools: TOOLS.responses,
      tool_choice: "auto",
      parallel_tool_calls: false,
    },
    messages: {
      messages: weather.messages,
      max_tokens: 500,
      tools: TOOLS.messages,
      tool_choice: { type: "auto", disable_parallel_tool_use: true },
    },
  },
  "an answer that follows a JSON schema": {
    "chat.completions": {
      messages: weather.chat,
      max_tokens: 500,
      response_format: { type: "json_schema", json_schema: { name: "answer", schema: ANSWER, strict: true } },
    },
    responses: {
      input: weather.responses,
      max_output_tokens: 500,
      text: { format: { type: "json_schema", name: "answer", schema: ANSWER, strict: true } },
    },
    messages: {
      messages: weather.messages,
      max_tokens: 500,
      output_config: { format: { type: "json_schema", schema: ANSWER } },
    },
    answer: "json",
  },
  "an image by its address": shown(
    { type: "image_url", image_url: { url: URL } },
    { type: "input_image", image_url: URL, detail: "auto" },
    { type: "image", source: { type: "url", url: URL } },
  ),
  "an image": shown(
    { type: "image_url", image_url: { url: `data:image/png;base64,${PNG}` } },
    { type: "input_image", image_url: `data:image/png;base64,${PNG}`, detail: "auto" },
    { type: "image", source: { type: "base64", media_type: "image/png", data: PNG } },
  ),
  "a PDF": shown(
    { type: "file", file: { filename: "brief.pdf", file_data: `data:application/pdf;base64,${PDF}` } },
    { type: "input_file", filename: "brief.pdf", file_data: `data:application/pdf;base64,${PDF}` },
    {
      type: "document",
      source: { type: "base64", media_type: "application/pdf", data: PDF },
      title: "brief.pdf",
    },
  ),
  "a PDF by its address": {
    responses: {
      max_output_tokens: 500,
      input: [
        {
          type: "message",
          role: "user",
          content: [{ type: "input_file", file_url: "https://example.com/a.pdf" }],
        },
      ],
    },
    messages: {
      max_tokens: 500,
      messages: [
        {
          role: "user",
          content: [{ type: "document", source: { type: "url", url: "https://example.com/a.pdf" } }],
        },
      ],
    },
  },
  "a document of plain text": {
    messages: {
      max_tokens: 500,
      messages: [
        {
          role: "user",
          content: [
            { type: "text", text: "What is it?" },
            {
              type: "document",
              source: { type: "text", media_type: "text/plain", data: "Once." },
              title: "a.txt",
            },
          ],
        },
      ],
    },
    received: {
      "chat.completions": {
        messages: [
          {
            role: "user",
            content: [
              { type: "text", text: "What is it?" },
              { type: "text", text: "a.txt\n\nOnce." },
            ],
          },
        ],
      },
      responses: {
        input: [
          {
            role: "user",
            content: [
              { type: "input_text", text: "What is it?" },
              { type: "input_text", text: "a.txt\n\nOnce." },
            ],
          },
        ],
      },
    },
  },
  "an image that a tool gave": {
    responses: {
      max_output_tokens: 500,
      tools: TOOLS.responses,
      input: [
        ...weather.responses,
        { type: "function_call", call_id: "call_1", name: "get_weather", arguments: '{"city":"Oslo"}' },
        {
          type: "function_call_output",
          call_id: "call_1",
          output: [
            { type: "input_text", text: "A picture of it." },
            { type: "input_image", image_url: `data:image/png;base64,${PNG}`, detail: "auto" },
          ],
        },
      ],
    },
    messages: {
      max_tokens: 500,
      tools: TOOLS.messages,
      messages: [
        ...weather.messages,
        {
          role: "assistant",
          content: [{ type: "tool_use", id: "call_1", name: "get_weather", input: { city: "Oslo" } }],
        },
        {
          role: "user",
          content: [
            {
              type: "tool_result",
              tool_use_id: "call_1",
              content: [
                { type: "text", text: "A picture of it." },
                { type: "image", source: { type: "base64", media_type: "image/png", data: PNG } },
              ],
            },
          ],
        },
      ],
    },
    // A tool's message holds text only: the image follows as the user's.
    received: {
      "chat.completions": {
        messages: [
          ...weather.chat,
          { role: "assistant", tool_calls: [{ id: "call_1", function: { arguments: '{"city":"Oslo"}' } }] },
          { role: "tool", tool_call_id: "call_1", content: "A picture of it." },
          {
            role: "user",
            content: [
              { type: "text", text: "Given by the tool call call_1:" },
              { type: "image_url", image_url: { url: `data:image/png;base64,${PNG}` } },
            ],
          },
        ],
      },
    },
  },
  "a refusal of an earlier answer": {
    "chat.completions": {
      max_tokens: 500,
      messages: [
        { role: "user", content: "One?" },
        { role: "assistant", content: null, refusal: "No." },
        { role: "user", content: "Two?" },
      ],
    },
    responses: {
      max_output_tokens: 500,
      input: [
        ...question("One?").responses,
        {
          id: "msg_1_0",
          type: "message",
          role: "assistant",
          status: "completed",
          content: [{ type: "refusal", refusal: "No." }],
        },
        ...question("Two?").responses,
      ],
    },
    received: {
      messages: {
        messages: [
          ...question("One?").messages,
          { role: "assistant", content: [{ type: "text", text: "No." }] },
          ...question("Two?").messages,
        ],
      },
    },
  },
  "thinking hard": {
    "chat.completions": { messages: weather.chat, max_tokens: 21_000, reasoning_effort: "high" },
    responses: { input: weather.responses, max_output_tokens: 21_000, reasoning: { effort: "high" } },
    messages: {
      messages: weather.messages,
      max_tokens: 21_000,
      thinking: { type: "enabled", budget_tokens: 16_800 },
    },
    omitted: {
      "messages on chat.completions": "thinking.budget_tokens",
      "messages on responses": "thinking.budget_tokens",
    },
  },
  "summaries of thoughts, asked for": {
    messages: {
      messages: weather.messages,
      max_tokens: 21_000,
      thinking: { type: "enabled", budget_tokens: 16_800, display: "summarized" },
    },
    received: {
      "chat.completions": { messages: weather.chat, max_tokens: 21_000, reasoning_effort: "high" },
      responses: {
        input: weather.responses,
        max_output_tokens: 21_000,
        reasoning: { effort: "high", summary: "auto" },
      },
    },
    omitted: {
      "messages on chat.completions": "thinking.display, thinking.budget_tokens",
      "messages on responses": "thinking.budget_tokens",
    },
  },
  "not thinking": {
    "chat.completions": { messages: weather.chat, max_tokens: 500, reasoning_effort: "none" },
    responses: { input: weather.responses, max_output_tokens: 500, reasoning: { effort: "none" } },
    received: { messages: { messages: weather.messages, max_tokens: 500, thinking: undefined } },
  },
  "who asks, and what to cache": {
    "chat.completions": {
      messages: weather.chat,
      max_tokens: 500,
      safety_identifier: "user-7",
      prompt_cache_key: "k",
    },
    responses: {
      input: weather.responses,
      max_output_tokens: 500,
      safety_identifier: "user-7",
      prompt_cache_key: "k",
    },
    received: {
      "chat.completions": { prompt_cache_key: "k" },
      messages: {
        messages: [
          {
            role: "user",
            content: [
              { type: "text", text: "How warm is it in Oslo?", cache_control: { type: "ephemeral" } },
            ],
          },
        ],
        metadata: { user_id: "user-7" },
      },
    },
  },
  "marks of what to cache": {
    messages: {
      max_tokens: 500,
      system: [{ type: "text", text: "Be brief.", cache_control: { type: "ephemeral" } }],
      messages: weather.messages,
    },
    received: {
      "chat.completions": { messages: [{ role: "system", content: "Be brief." }, ...weather.chat] },
      responses: {
        input: [
          { type: "message", role: "system", content: [{ type: "input_text", text: "Be brief." }] },
          ...weather.responses,
        ],
      },
    },
    omitted: {
      "messages on chat.completions": "cache_control",
      "messages on responses": "cache_control",
    },
  },
  "a tool of free form": {
    "chat.completions": {
      messages: weather.chat,
      max_tokens: 500,
      tools: [
        {
          type: "custom",
          custom: {
            name: "apply_patch",
            description: "Edits files.",
            format: { type: "grammar", grammar: GRAMMAR },
          },
        },
      ],
    },
    responses: {
      input: weather.responses,
      max_output_tokens: 500,
      tools: [
        {
          type: "custom",
          name: "apply_patch",
          description: "Edits files.",
          format: { type: "grammar", ...GRAMMAR },
        },
      ],
    },
    received: {
      "chat.completions": {
        tools: [{ type: "function", function: { name: "apply_patch", parameters: { required: ["input"] } } }],
      },
      messages: { tools: [{ name: "apply_patch", input_schema: { type: "object", required: ["input"] } }] },
    },
    omitted: {
      "chat.completions on messages": "tools[].format",
      "responses on chat.completions": "tools[].format",
      "responses on messages": "tools[].format",
    },
  },
  "stop sequences": {
    "chat.completions": { messages: weather.chat, max_tokens: 500, stop: ["three", "four"] },
    messages: { messages: weather.messages, max_tokens: 500, stop_sequences: ["three", "four"] },
  },
  "the probability of each token": {
    "chat.completions": { messages: weather.chat, max_tokens: 500, logprobs: true, top_logprobs: 2 },
    responses: {
      input: weather.responses,
      max_output_tokens: 500,
      include: ["message.output_text.logprobs"],
      top_logprobs: 2,
    },
  },
  "what makes no difference to the answer": {
    "chat.completions": {
      messages: weather.chat,
      max_tokens: 500,
      seed: 7,
      verbosity: "low",
      metadata: { a: "b" },
    },
    received: {
      responses: { metadata: { a: "b" }, text: { verbosity: "low" } },
      messages: { messages: weather.messages },
    },
    omitted: {
      "chat.completions on responses": "seed",
      "chat.completions on messages": "seed, verbosity, metadata",
    },
  },
} satisfies Record<string, Exchange>;
