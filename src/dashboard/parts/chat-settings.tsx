import { useRef } from "preact/hooks";
import { type ChatMessage, type ChatRequest, chatBody } from "../chat-stream.ts";
import { MAX_ANSWER_TOKENS } from "../playground-models.ts";
import { CopyButton } from "./copy-button.tsx";
import { Choice, readLimit, TextField, useField } from "./field.tsx";
import { gatewayAddress } from "./first-call.tsx";

/** What a conversation begins with, and how answers are made. */
export function useChatSettings() {
  const system = useField("");
  const temperature = useField("");
  const maxTokens = useField("");
  return {
    fields: { system, temperature, maxTokens },
    read(): Pick<ChatRequest, "maxTokens" | "temperature"> & { system: string } {
      const most = readLimit(maxTokens.value);
      const heat = readLimit(temperature.value);
      if (most === undefined || most === 0) throw new Error("The longest answer must be a number of tokens.");
      if (heat === undefined || (heat ?? 0) > MAX_TEMPERATURE)
        throw new Error(`The temperature must be a number from 0 to ${MAX_TEMPERATURE}.`);
      return { system: system.value.trim(), maxTokens: most ?? MAX_ANSWER_TOKENS, temperature: heat };
    },
  };
}

const MAX_TEMPERATURE = 2;

export function ChatSettings({ fields, request }: ChatSettingsProps) {
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
      <AsCode request={request} />
    </details>
  );
}

interface ChatSettingsProps {
  readonly fields: ReturnType<typeof useChatSettings>["fields"];
  /** The next one, or the last. */
  readonly request: ChatRequest;
}

/** The conversation as a program sends it; the key is not in it. */
function AsCode({ request }: { request: ChatRequest }) {
  const picked = useField<keyof typeof LANGUAGES>("curl");
  const shown = useRef<HTMLElement>(null);
  const { name, write } = LANGUAGES[picked.value];
  const text = write(gatewayAddress(), chatBody({ ...request, messages: request.messages.map(shortened) }));
  return (
    <>
      <Choice
        label="Copy as"
        options={Object.entries(LANGUAGES).map(([id, language]) => [id, language.name])}
        {...picked}
      />
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable with the keyboard */}
      <section ref={shown} class="snippet mono" tabIndex={0} aria-label={`As ${name}`}>
        {text}
      </section>
      <CopyButton key={name} label={`the conversation as ${name}`} value={text} shown={shown} />
    </>
  );
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
