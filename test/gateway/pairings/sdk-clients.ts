import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import type { SurfaceName } from "../../../src/catalog/catalog.ts";
import { type Told, toldByChunks, toldByWhole } from "../../surfaces/told.ts";

export interface Heard {
  readonly told: Told;
  readonly headers: Headers;
}

/** Asks with the official client of the language, which puts a streamed answer together itself. */
export async function ask(
  surface: SurfaceName,
  at: { readonly url: string; readonly key: string },
  body: object,
  stream: boolean,
): Promise<Heard> {
  let headers = new Headers();
  const noting = async (input: string | URL | Request, init?: RequestInit): Promise<Response> => {
    const response = await fetch(input, init);
    headers = response.headers;
    return response;
  };
  const options = { apiKey: at.key, maxRetries: 0, fetch: noting as typeof fetch };
  return { told: await ASK[surface](at.url, options, body, stream), headers };
}

interface Options {
  readonly apiKey: string;
  readonly maxRetries: number;
  readonly fetch: typeof fetch;
}

const ASK: Readonly<
  Record<SurfaceName, (url: string, options: Options, body: object, stream: boolean) => Promise<Told>>
> = {
  "chat.completions": async (url, options, body, stream) => {
    const { chat } = new OpenAI({ ...options, baseURL: `${url}/v1` });
    const asked = body as OpenAI.ChatCompletionCreateParamsNonStreaming;
    if (!stream) return toldByWhole("chat.completions", await chat.completions.create(asked));
    const chunks: object[] = [];
    const answer = chat.completions.stream({
      ...asked,
      stream: true,
      stream_options: { include_usage: true },
    });
    answer.on("chunk", (chunk) => chunks.push(structuredClone(chunk)));
    // The package's own sum forgets thoughts, which its types do not have; that it adds up is what is asked
    // of it.
    await answer.finalChatCompletion();
    return toldByChunks(chunks);
  },
  responses: async (url, options, body, stream) => {
    const { responses } = new OpenAI({ ...options, baseURL: `${url}/v1` });
    const asked = body as OpenAI.Responses.ResponseCreateParamsNonStreaming;
    const whole = stream
      ? await responses.stream({ ...asked, stream: true }).finalResponse()
      : await responses.create(asked);
    return toldByWhole("responses", whole);
  },
  messages: async (url, options, body, stream) => {
    const { messages } = new Anthropic({ ...options, baseURL: url });
    const asked = body as Anthropic.MessageCreateParamsNonStreaming;
    return toldByWhole(
      "messages",
      stream ? await messages.stream(asked).finalMessage() : await messages.create(asked),
    );
  },
};
