import type { Api } from "../api.ts";

export interface ChatMessage {
  readonly role: "system" | "user" | "assistant";
  readonly content: string | readonly ContentPart[];
}

type ContentPart =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "image_url"; readonly image_url: { readonly url: string } };

/** A text with images, or the text alone. */
export const contentOf = (text: string, images: readonly string[]): ChatMessage["content"] =>
  images.length === 0
    ? text
    : [{ type: "text", text }, ...images.map((url) => ({ type: "image_url", image_url: { url } }) as const)];

export interface ChatRequest {
  readonly model: string;
  readonly messages: readonly ChatMessage[];
  readonly maxTokens: number;
  /** Null: the model's own. */
  readonly temperature: number | null;
}

/** What is sent, as every client of the API writes it. */
export const chatBody = ({ model, messages, maxTokens, temperature }: ChatRequest) => ({
  model,
  messages,
  max_tokens: maxTokens,
  ...(temperature === null ? {} : { temperature }),
});

/** As much of an answer as is known. Times are those of this browser, from the sending of the request. */
export interface ChatAnswer {
  readonly text: string;
  /** The id of its receipt. */
  readonly receipt: string | null;
  /** Cost of the whole request, from the stream's last event. */
  readonly usage: ChatUsage | null;
  /** To the first token, be it a thought. */
  readonly firstTokenMs: number | null;
  readonly totalMs: number | null;
  readonly finishReason: string | null;
}

interface ChatUsage {
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** Null where the gateway does not tell. */
  readonly costUsd: number | null;
}

/**
 * Streams a chat completion, and tells the answer again with all that has come. Rejects with what the gateway or the
 * stream reports as an error; earlier updates stay valid.
 */
export async function streamChat(
  api: Api,
  request: ChatRequest,
  onAnswer: (answer: ChatAnswer) => void,
  signal: AbortSignal,
): Promise<void> {
  const began = performance.now();
  const body = { ...chatBody(request), stream: true, stream_options: { include_usage: true } };
  const response = await api.open("POST", "v1/chat/completions", body, signal);
  let answer: ChatAnswer = { ...NOTHING, receipt: response.headers.get("x-gateway-receipt") };
  const update = (more: Partial<ChatAnswer>) => {
    answer = { ...answer, ...more };
    onAnswer(answer);
  };
  update({});
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    const lines = (rest + value).split("\n");
    rest = lines.pop()!;
    for (const event of lines.map(eventIn)) {
      if (event === null) continue;
      if (event.error !== undefined) throw new Error(event.error.message);
      update(changesIn(event, answer, performance.now() - began));
    }
  }
  update({ totalMs: performance.now() - began });
}

const NOTHING: ChatAnswer = {
  text: "",
  receipt: null,
  usage: null,
  firstTokenMs: null,
  totalMs: null,
  finishReason: null,
};

const eventIn = (line: string): ChatEvent | null =>
  line.startsWith("data: ") && line !== "data: [DONE]" ? JSON.parse(line.slice("data: ".length)) : null;

function changesIn({ choices, usage }: ChatEvent, { text, firstTokenMs }: ChatAnswer, ms: number) {
  const { delta = {}, finish_reason } = choices?.[0] ?? {};
  const isToken = Boolean(delta.content || delta.reasoning_content);
  return {
    text: text + (delta.content ?? ""),
    ...(firstTokenMs === null && isToken ? { firstTokenMs: ms } : {}),
    ...(typeof finish_reason === "string" ? { finishReason: finish_reason } : {}),
    ...(usage ? { usage: usageOf(usage) } : {}),
  };
}

const usageOf = ({ prompt_tokens, completion_tokens, cost }: NonNullable<ChatEvent["usage"]>): ChatUsage => ({
  inputTokens: prompt_tokens,
  outputTokens: completion_tokens,
  costUsd: cost ?? null,
});

interface ChatEvent {
  readonly error?: { readonly message: string };
  readonly choices?: readonly {
    readonly delta?: { readonly content?: string | null; readonly reasoning_content?: string | null };
    readonly finish_reason?: string | null;
  }[];
  readonly usage?: {
    readonly prompt_tokens: number;
    readonly completion_tokens: number;
    readonly cost?: number;
  } | null;
}
