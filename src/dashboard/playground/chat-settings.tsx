import { readLimit, TextField, useField } from "../parts/field.tsx";
import { gatewayAddress } from "../parts/first-call.tsx";
import { Snippet } from "../parts/snippet.tsx";
import { type ChatMessage, type ChatRequest, chatBody } from "./chat-stream.ts";
import { MAX_ANSWER_TOKENS } from "./model-choices.ts";

/** What a conversation begins with, and how answers are made. */
export function useChatSettings() {
  const system = useField("");
  const temperature = useField("");
  const maxTokens = useField("");
  return {
    fields: { system, temperature, maxTokens },
    read(): Pick<ChatRequest, "maxTokens" | "temperature"> & { system: string } {
      const most = readLimit(maxTokens.value, NO_LENGTH);
      const heat = readLimit(temperature.value, NO_TEMPERATURE);
      if (most === 0) throw new Error(NO_LENGTH);
      if ((heat ?? 0) > MAX_TEMPERATURE) throw new Error(NO_TEMPERATURE);
      return { system: system.value.trim(), maxTokens: most ?? MAX_ANSWER_TOKENS, temperature: heat };
    },
  };
}

const MAX_TEMPERATURE = 2;
const NO_TEMPERATURE = `The temperature must be a number from 0 to ${MAX_TEMPERATURE}.`;
const NO_LENGTH = "The longest answer must be a number of tokens.";

export function ChatSettings({ fields, request }: ChatSettingsProps) {
  // The conversation as a program sends it; the key is not in it.
  const body = chatBody({ ...request, messages: request.messages.map(shortened) });
  return (
    <details class="chat-settings">
      <summary>Settings and code</summary>
      <TextField label="System prompt" placeholder="You are a helpful assistant." {...fields.system} />
      <div class="columns">
        <TextField
          label="Temperature"
          inputMode="decimal"
          placeholder="the model's own"
          {...fields.temperature}
        />
        <TextField
          label="Longest answer, in tokens"
          inputMode="numeric"
          placeholder={String(MAX_ANSWER_TOKENS)}
          {...fields.maxTokens}
        />
      </div>
      <Snippet
        label="Copy as"
        what="the conversation"
        by="As"
        languages={LANGUAGES}
        textOf={(write) => write(gatewayAddress(), body)}
      />
    </details>
  );
}

interface ChatSettingsProps {
  readonly fields: ReturnType<typeof useChatSettings>["fields"];
  /** The next one, or the last. */
  readonly request: ChatRequest;
}

/** Images as a program would put them there: whole, they are megabytes. */
const shortened = (message: ChatMessage): ChatMessage =>
  typeof message.content === "string"
    ? message
    : {
        ...message,
        content: message.content.map((part) =>
          part.type === "text"
            ? part
            : { ...part, image_url: { url: part.image_url.url.replace(/;base64,.*$/s, ";base64,…") } },
        ),
      };

type ChatBody = ReturnType<typeof chatBody>;

const LANGUAGES = {
  curl: {
    name: "curl",
    write: (address, body) => `curl ${address}/v1/chat/completions \\
  -H "Authorization: Bearer $KEY" \\
  -d '${JSON.stringify(body, null, 2).replaceAll("'", "'\\''")}'`,
  },
  python: {
    name: "Python",
    write: (address, { messages, ...rest }) => `from openai import OpenAI

client = OpenAI(base_url="${address}/v1", api_key=KEY)
answer = client.chat.completions.create(
${Object.entries(rest)
  .map(([name, value]) => `    ${name}=${JSON.stringify(value)},`)
  .join("\n")}
    messages=${JSON.stringify(messages)},
)
print(answer.choices[0].message.content)`,
  },
  typescript: {
    name: "TypeScript",
    write: (address, body) => `import OpenAI from "openai";

const client = new OpenAI({ baseURL: "${address}/v1", apiKey: KEY });
const answer = await client.chat.completions.create(${JSON.stringify(body, null, 2)});
console.log(answer.choices[0].message.content);`,
  },
} as const satisfies Record<string, { name: string; write: (address: string, body: ChatBody) => string }>;
