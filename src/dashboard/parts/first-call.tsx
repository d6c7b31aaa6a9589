import { useRef } from "preact/hooks";
import type { EntryAnswer } from "../../api/catalog.ts";
import { useOwner } from "../owner.ts";
import { useList } from "../resource.ts";
import { CopyButton } from "./copy-button.tsx";
import { Choice, useField } from "./field.tsx";
import { Section } from "./frame.tsx";

/**
 * What to write into a program: a call of a model, or of one that answers. The key itself is never in it.
 */
export function FirstCall({ model: named }: { readonly model?: string }) {
  const { api, me } = useOwner();
  const catalog = useList<EntryAnswer>(api, "v1/catalog");
  const picked = useField<keyof typeof CLIENTS>("curl");
  const { name, write } = CLIENTS[picked.value];
  const shown = useRef<HTMLElement>(null);
  const model = named ?? callable(catalog.data ?? []);
  const refused = named === undefined && model !== FREE && me.available_usd <= 0;
  const text = model === null ? null : write(gatewayAddress(), model);
  if (text === null) return null;
  return (
    <Section title="Use a key" class="card">
      <p class="soft">
        Any OpenAI or Anthropic client works, with this gateway as its base URL. <code>KEY</code> stands for
        your key.
        {refused && (
          <>
            {" "}
            No model here is free right now, so it answers once there is <a href="#/credit">credit</a>.
          </>
        )}
      </p>
      <Choice
        label="Client"
        options={Object.entries(CLIENTS).map(([id, { name }]) => [id, name])}
        {...picked}
      />
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable with the keyboard */}
      <section ref={shown} class="snippet mono" tabIndex={0} aria-label={`For ${name}`}>
        {text}
      </section>
      <div class="row">
        <CopyButton key={name} label={`the example for ${name}`} value={text} shown={shown} />
      </div>
    </Section>
  );
}

/** The page calls the API at addresses next to its own, so that is where programs reach it too. */
export const gatewayAddress = (): string => new URL(".", location.href).href.replace(/\/$/, "");

/** Free where something is, because a new balance is empty. */
function callable(models: readonly EntryAnswer[]): string | null {
  const served = models.filter(({ available }) => available);
  return served.some(({ free }) => free) ? FREE : (served[0]?.id ?? null);
}

const FREE = "gateway/auto:free";

const CLIENTS = {
  curl: {
    name: "curl",
    write: (address, model) => `curl ${address}/v1/chat/completions \\
  -H "Authorization: Bearer $KEY" \\
  -d '{"model": "${model}", "messages": [{"role": "user", "content": "Hello!"}]}'`,
  },
  python: {
    name: "OpenAI for Python",
    write: (address, model) => `from openai import OpenAI

client = OpenAI(base_url="${address}/v1", api_key=KEY)
answer = client.chat.completions.create(
    model="${model}",
    messages=[{"role": "user", "content": "Hello!"}],
)
print(answer.choices[0].message.content)`,
  },
  javascript: {
    name: "OpenAI for JavaScript",
    write: (address, model) => `import OpenAI from "openai";

const client = new OpenAI({ baseURL: "${address}/v1", apiKey: KEY });
const answer = await client.chat.completions.create({
  model: "${model}",
  messages: [{ role: "user", content: "Hello!" }],
});
console.log(answer.choices[0].message.content);`,
  },
  anthropic: {
    name: "Anthropic for Python",
    write: (address, model) => `from anthropic import Anthropic

client = Anthropic(base_url="${address}", api_key=KEY)
answer = client.messages.create(
    model="${model}",
    max_tokens=1000,
    messages=[{"role": "user", "content": "Hello!"}],
)
print(answer.content[0].text)`,
  },
  claude: {
    name: "Claude Code",
    write: (address, model) => `ANTHROPIC_BASE_URL=${address} ANTHROPIC_API_KEY=$KEY claude --model ${model}`,
  },
} as const satisfies Record<string, { name: string; write: (address: string, model: string) => string }>;
