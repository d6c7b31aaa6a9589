import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import type { SurfaceName } from "../../../src/catalog/catalog.ts";
import { type AnswerContent, contentOfChunks, contentOfWhole } from "../../surfaces/answer-content.ts";

export interface SdkAnswer {
  readonly answer: AnswerContent;
  readonly headers: Headers;
}

/** Asks with the official client of the language, which puts a streamed answer together itself. */
export async function send(
  surface: SurfaceName,
  at: { readonly url: string; readonly key: string },
  body: object,
  stream: boolean,
): Promise<SdkAnswer> {
  let headers = new Headers();
  const noting = async (input: string | URL | Request, init?: RequestInit): Promise<Response> => {
    const response = await fetch(input, init);
    headers = response.headers;
    return response;
  };
  const options = { apiKey: at.key, maxRetries: 0, fetch: noting as typeof fetch };
  return { answer: await SEND[surface](at.url, options, body, stream), headers };
}

interface Options {
  readonly apiKey: string;
  readonly maxRetries: number;
  readonly fetch: typeof fetch;
}

const SEND: Readonly<
  Record<
    SurfaceName,
    (url: string, options: Options, body: object, stream: boolean) => Promise<AnswerContent>
  >
> = {
  "chat.completions": async (url, options, body, stream) => {
    const { chat } = new OpenAI({ ...options, baseURL: `${url}/v1` });
    const params = body as OpenAI.ChatCompletionCreateParamsNonStreaming;
    if (!stream) return contentOfWhole("chat.completions", await chat.completions.create(params));
    const chunks: object[] = [];
    const answer = chat.completions.stream({
      ...params,
      stream: true,
      stream_options: { include_usage: true },
    });
    answer.on("chunk", (chunk) => chunks.push(structuredClone(chunk)));
    // The package's own sum forgets thoughts, which its types do not have; that it adds up is what is asked
    // of it.
    await answer.finalChatCompletion();
    return contentOfChunks(chunks);
  },
  responses: async (url, options, body, stream) => {
    const { responses } = new OpenAI({ ...options, baseURL: `${url}/v1` });
    const params = body as OpenAI.Responses.ResponseCreateParamsNonStreaming;
    const whole = stream
      ? await responses.stream({ ...params, stream: true }).finalResponse()
      : await responses.create(params);
    return contentOfWhole("responses", whole);
  },
  messages: async (url, options, body, stream) => {
    const { messages } = new Anthropic({ ...options, baseURL: url });
    const params = body as Anthropic.MessageCreateParamsNonStreaming;
    return contentOfWhole(
      "messages",
      stream ? await messages.stream(params).finalMessage() : await messages.create(params),
    );
  },
};
