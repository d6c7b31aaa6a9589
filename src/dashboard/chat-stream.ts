import type { Api } from "./api.ts";

export interface ChatMessage {
  readonly role: "user" | "assistant";
  readonly content: string;
}

export interface ChatRequest {
  readonly model: string;
  readonly messages: readonly ChatMessage[];
  readonly maxTokens: number;
}

/**
 * Streams a chat completion. Returns the receipt's id; rejects with what the gateway or the stream says went
 * wrong.
 */
export async function streamChat(
  api: Api,
  { model, messages, maxTokens }: ChatRequest,
  onText: (text: string) => void,
  signal: AbortSignal,
): Promise<string | null> {
  const body = { model, messages, max_tokens: maxTokens, stream: true };
  const response = await api.open("POST", "v1/chat/completions", body, signal);
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    const lines = (rest + value).split("\n");
    rest = lines.pop()!;
    for (const line of lines) readLine(line, onText);
  }
  return response.headers.get("x-gateway-receipt");
}

function readLine(line: string, onText: (text: string) => void): void {
  if (!line.startsWith("data: ") || line === "data: [DONE]") return;
  const event = JSON.parse(line.slice("data: ".length)) as ChatEvent;
  if (event.error !== undefined) throw new Error(event.error.message);
  const text = event.choices?.[0]?.delta?.content;
  if (typeof text === "string" && text !== "") onText(text);
}

interface ChatEvent {
  readonly error?: { readonly message: string };
  readonly choices?: readonly { readonly delta?: { readonly content?: string | null } }[];
}
