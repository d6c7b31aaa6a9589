/** A first call for each client. The key itself is never in it. */
export const FIRST_CALLS = {
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
