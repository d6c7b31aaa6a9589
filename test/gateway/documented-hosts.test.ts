import { describe, expect, test } from "bun:test";
import { parse } from "yaml";
import type { Behaviour } from "../fakes/host.ts";
import { type FakeRequest, startFakeHost } from "../fakes/host.ts";
import { ANTHROPIC_MESSAGES } from "../fakes/hosts/anthropic-messages.ts";
import { COMPATIBLE_CHAT } from "../fakes/hosts/compatible-chat.ts";
import { OPENAI_CHAT } from "../fakes/hosts/openai-chat.ts";
import { OPENAI_RESPONSES } from "../fakes/hosts/openai-responses.ts";
import type { Transcript } from "../fakes/hosts/transcript.ts";
import { open } from "./open.ts";

/**
 * Every row of docs/hosts.md, copied as it stands but for the address, asked by a client of its own and of
 * another language.
 */
const document = await Bun.file(new URL("../../docs/hosts.md", import.meta.url)).text();
const ABOUT_ALL_PROVIDERS = ["Several keys"];
const SECTIONS = [...document.matchAll(/^## (.+)$[^#]*?```yaml\n([\s\S]*?)```/gm)]
  .map(([, name, yaml]) => ({ name: name!, yaml: yaml! }))
  .filter(({ name }) => !ABOUT_ALL_PROVIDERS.includes(name));

const transcriptOf = (start: string): Transcript =>
  Object.entries(COMPATIBLE_CHAT).find(([name]) => name.startsWith(start))![1];

const BEARER = ["authorization", "Bearer s3cret"] as const;

/** What the provider says, where it listens, and the header with its key. */
const chat = (
  transcript: Transcript,
  path = "/v1/chat/completions",
  key: readonly [string, string] | null = BEARER,
) => ({ transcript, path, key });
const PROVIDERS: Readonly<Record<string, ReturnType<typeof chat>>> = {
  OpenAI: chat(Object.values(OPENAI_CHAT)[0]!),
  Anthropic: chat(Object.values(ANTHROPIC_MESSAGES)[0]!, "/v1/messages", ["x-api-key", "s3cret"]),
  OpenRouter: chat(transcriptOf("OpenRouter"), "/api/v1/chat/completions"),
  "Azure OpenAI": chat(transcriptOf("Azure"), "/openai/v1/chat/completions", ["api-key", "s3cret"]),
  Gemini: chat(transcriptOf("Gemini"), "/v1beta/openai/chat/completions"),
  Groq: chat(transcriptOf("Groq"), "/openai/v1/chat/completions"),
  Mistral: chat(transcriptOf("Mistral")),
  DeepSeek: chat(transcriptOf("DeepSeek")),
  vLLM: chat(transcriptOf("vLLM")),
  "llama.cpp server": chat(transcriptOf("llama.cpp"), undefined, null),
  Ollama: chat(transcriptOf("Ollama"), undefined, null),
};

test("every section has a provider to be asked", () => {
  expect(SECTIONS.map(({ name }) => name)).toEqual(Object.keys(PROVIDERS));
});

describe.each(SECTIONS)("the row for $name", ({ name, yaml }) => {
  const { transcript, path, key } = PROVIDERS[name]!;
  const rows = parse(yaml);
  const { base_url: address, quirks = {} } = rows.hosts[0];
  const model: string = rows.models[0].id;

  test("is asked as its provider documents, and its answer reaches clients of its own language and of another", async () => {
    const host = await startFakeHost((request) => serve(transcript, request));
    const text = yaml.replace(address, host.url + new URL(address).pathname);
    const variables = [...yaml.matchAll(/\$\{(\w+)\}/g)].map(([, variable]) => [variable!, "s3cret"]);
    const gateway = await open(text, Object.fromEntries(variables));
    try {
      const { key: bearer } = await gateway.key(10);
      const json = { model, max_tokens: 2_000, messages: [{ role: "user", content: "Hi" }] };
      const chat = await gateway.send("POST", "/v1/chat/completions", { bearer, json });
      const messages = await gateway.send("POST", "/v1/messages", {
        bearer,
        json: { ...json, stream: true },
      });
      expect([chat.status, messages.status]).toEqual([200, 200]);
      const { story } = transcript;
      if (story.text !== undefined) expect(chat.text).toContain(JSON.stringify(story.text).slice(1, -1));
      for (const call of story.calls ?? []) expect(chat.text).toContain(call.name);
      expect(messages.text).toEndWith('data: {"type":"message_stop"}\n\n');
      for (const request of host.requests) {
        // A host of several languages is asked in the one that says most of the client's.
        if (rows.hosts[0].speaks.length === 1) expect(request.path).toBe(path);
        else expect(request.path).toStartWith(path.slice(0, -"/chat/completions".length));
        if (key !== null) expect(request.headers[key[0]]).toBe(key[1]);
        else expect(request.headers.authorization).toBeUndefined();
        const sent = request.json();
        if (quirks.max_completion_tokens === true && sent.input === undefined)
          expect([sent.max_completion_tokens, sent.max_tokens]).toContain(2_000);
        if (quirks.no_stream_options === true) expect(sent.stream_options).toBeUndefined();
      }
    } finally {
      await gateway.close();
      await host.close();
    }
  });
});

/** A provider of several languages has this to say in each of the others. */
const OTHERS: Record<string, Transcript> = {
  responses: Object.values(OPENAI_RESPONSES)[0]!,
  messages: Object.values(ANTHROPIC_MESSAGES)[0]!,
};

function serve(transcript: Transcript, { path, json }: FakeRequest): Behaviour {
  const language = path.endsWith("/chat/completions")
    ? "chat.completions"
    : path.slice(path.lastIndexOf("/") + 1);
  const { stream, whole } = language === transcript.host ? transcript : OTHERS[language]!;
  return json().stream === true
    ? answer(200, "text/event-stream", stream)
    : answer(200, "application/json", JSON.stringify(whole));
}

const answer =
  (status: number, type: string, text: string): Behaviour =>
  async (wire) => {
    const body = Buffer.from(text);
    await wire.write(
      Buffer.from(
        `HTTP/1.1 ${status} Fine\r\ncontent-type: ${type}\r\ncontent-length: ${body.length}\r\n\r\n`,
      ),
    );
    await wire.write(body);
  };
