import type * as Anthropic from "@anthropic-ai/sdk/resources/messages/messages";
import type { ModelInfo } from "@anthropic-ai/sdk/resources/models";
import type * as Chat from "openai/resources/chat/completions/completions";
import type { Model } from "openai/resources/models";
import type * as Responses from "openai/resources/responses/responses";

/**
 * What the official SDK packages publish as the wire; schemas.ts makes a JSON Schema of every member. One
 * interface a package: the two give one name to different things.
 */
export interface OpenAiWire {
  chatRequest: Chat.ChatCompletionCreateParams;
  chatCompletion: Chat.ChatCompletion;
  chatChunk: Chat.ChatCompletionChunk;
  responsesRequest: Responses.ResponseCreateParams;
  response: Responses.Response;
  responseEvent: Responses.ResponseStreamEvent;
  openAiModel: Model;
}

export interface AnthropicWire {
  messagesRequest: Anthropic.MessageCreateParams;
  message: Anthropic.Message;
  messageEvent: Anthropic.RawMessageStreamEvent;
  anthropicModel: ModelInfo;
}
