import { useId, useRef, useState } from "preact/hooks";
import type { List } from "../../api/answers.ts";
import type { EntryAnswer } from "../../api/catalog.ts";
import { useOwner } from "../owner.ts";
import { useResource } from "../resource.ts";
import { CopyButton } from "./copy-button.tsx";
import { Choice } from "./field.tsx";

/**
 * What to write into a program, for whoever has a key and has sent nothing with it yet. The key itself is
 * never in it.
 */
export function FirstCall() {
  const { api, me } = useOwner();
  const catalog = useResource(() => api.get<List<EntryAnswer>>("v1/catalog"), [api]);
  const [client, setClient] = useState<keyof typeof CLIENTS>("curl");
  const shown = useRef<HTMLElement>(null);
  const title = useId();
  const model = callable(catalog.data?.data ?? []);
  const refused = model !== FREE && me.available_usd <= 0;
  const text = model === null ? null : CLIENTS[client].write(gatewayAddress(), model);
  if (text === null) return null;
  return (
    <section class="card" aria-labelledby={title}>
      <h2 id={title}>Use a key</h2>
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
        value={client}
        onValue={(value) => setClient(value as typeof client)}
        options={Object.entries(CLIENTS).map(([id, { name }]) => [id, name] as const)}
      />
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable with the keyboard */}
      <section ref={shown} class="snippet mono" tabIndex={0} aria-label={`For ${CLIENTS[client].name}`}>
        {text}
      </section>
      <div class="row">
        <CopyButton
          key={client}
          label={`the example for ${CLIENTS[client].name}`}
          value={text}
          shown={shown}
        />
      </div>
    </section>
  );
}

/** The page calls the API at addresses beside its own, so that is where programs reach it too. */
const gatewayAddress = (): string => new URL(".", location.href).href.replace(/\/$/, "");

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
