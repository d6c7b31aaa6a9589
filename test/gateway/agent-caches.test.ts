import { afterAll, expect, test } from "bun:test";
import { systemClock } from "../../src/units/clock.ts";
import { json, status } from "../fakes/behaviours.ts";
import { BreakpointCache } from "../fakes/breakpoint-cache.ts";
import { closeAll } from "../fakes/close-all.ts";
import { startFakeHost } from "../fakes/host.ts";
import { type CacheUse, PromptCache } from "../fakes/prompt-cache.ts";
import { messagesText, responsesText } from "../fakes/transcripts.ts";
import { open } from "./open.ts";

/**
 * Sessions of 40 turns in the form of Claude Code's and Codex's requests, as these were recorded, on hosts of both languages
 * that match and charge their caches as their vendors say. The agents themselves do the same in test/agents/cached.ts.
 */
const TURNS = 40;
const uses: CacheUse[] = [];
const caches = { messages: new PromptCache(systemClock), responses: new BreakpointCache(systemClock) };
const hosts = await Promise.all(
  (["messages", "responses"] as const).map((language) =>
    startFakeHost((request) => {
      const use = caches[language].take(request.json());
      if (typeof use === "string") return status(400, {}, use);
      uses.push(use);
      const usage = { input: use.read + use.written + use.rest, cached: use.read, cacheWrite: use.written };
      return json(
        (language === "messages" ? messagesText(["Fine."], usage) : responsesText(["Fine."], usage)).whole,
      );
    }),
  ),
);
const gateway = await open(`
hosts:
  - { id: messages, base_url: "${hosts[0]!.url}/v1", speaks: [messages] }
  - { id: responses, base_url: "${hosts[1]!.url}/v1", speaks: [responses], quirks: { cache_marks: true } }
models:${["messages", "responses"]
  .map(
    (id) => `
  - id: test/${id}
    context_length: 400000
    max_output_tokens: 4000
    price: { input: 1, output: 5, cache_read: 0.1, cache_write: 1.25 }
    routes: [{ host: ${id}, model: m }]`,
  )
  .join("")}
defaults: { accountless: { rpm_limit: null, tpm_limit: null, daily_limit_usd: null, monthly_limit_usd: null } }
`);
const mine = await gateway.key(50);
afterAll(() => closeAll(gateway, ...hosts));

const words = (topic: string, tokens: number) => `${topic} ${"of the same. ".repeat(tokens / 3)}`;
const MARK = { cache_control: { type: "ephemeral" } };
const NAMES = ["Bash", "Read", "Edit", "Grep"];

/** Marks stand behind the instructions and at the end of the newest message alone. */
function claudeCode(turn: number): object {
  const messages: object[] = [
    {
      role: "user",
      content: [
        { type: "text", text: "<system-reminder>Today is Tuesday.</system-reminder>" },
        { type: "text", text: "Take all steps." },
      ],
    },
    { role: "system", content: words("Environment", 300) },
  ];
  for (let step = 1; step <= turn; step++) {
    messages.push({
      role: "assistant",
      content: [{ type: "tool_use", id: `toolu_${step}`, name: "Bash", input: { command: `step ${step}` } }],
    });
    const result = {
      type: "tool_result",
      tool_use_id: `toolu_${step}`,
      content: words(`Step ${step}`, 600),
      ...(step === turn && MARK),
    };
    messages.push({ role: "user", content: [result] });
  }
  return {
    max_tokens: 100,
    system: [
      { type: "text", text: "Version 1" },
      { type: "text", text: "You are Claude Code.", ...MARK },
      { type: "text", text: words("Rules", 3_000), ...MARK },
    ],
    tools: NAMES.map((name) => ({ name, description: words(name, 500), input_schema: { type: "object" } })),
    messages,
  };
}

/** Nothing is marked; a key names the conversation. */
function codex(turn: number): object {
  const message = (role: string, text: string) => ({
    type: "message",
    role,
    content: [{ type: "input_text", text }],
  });
  const input: object[] = [
    message("developer", words("Permissions", 300)),
    message("user", "<environment_context>/work</environment_context>"),
    message("user", "Take all steps."),
  ];
  for (let step = 1; step <= turn; step++) {
    input.push({
      type: "function_call",
      name: "shell",
      arguments: `{"command":"step ${step}"}`,
      call_id: `call_${step}`,
    });
    input.push({ type: "function_call_output", call_id: `call_${step}`, output: words(`Step ${step}`, 600) });
  }
  return {
    instructions: words("Rules", 3_000),
    input,
    tools: NAMES.map((name) => ({
      type: "function",
      name,
      description: words(name, 500),
      parameters: { type: "object", properties: {} },
      strict: false,
    })),
    prompt_cache_key: "session",
    store: false,
    max_output_tokens: 100,
  };
}

async function session(path: string, model: string, bodyOf: (turn: number) => object) {
  const first = uses.length;
  let usd = 0;
  for (let turn = 0; turn < TURNS; turn++) {
    const reply = await gateway.send("POST", path, { bearer: mine.key, json: { model, ...bodyOf(turn) } });
    expect(reply.status).toBe(200);
    usd += (await gateway.receipt(reply, mine.key)).json.cost_usd;
  }
  const late = uses.slice(first + 2);
  const sum = (of: (use: CacheUse) => number) => late.reduce((total, use) => total + of(use), 0);
  return { usd, share: sum(({ read }) => read) / sum(({ read, written, rest }) => read + written + rest) };
}

test.each([
  ["Claude Code", "/v1/messages", "test/messages", "test/responses", claudeCode],
  ["Codex", "/v1/responses", "test/responses", "test/messages", codex],
] as const)(
  "%s reads nine tenths of its prompts from the cache of either language's host, for the same bill",
  async (_, path, own, other, bodyOf) => {
    const native = await session(path, own, bodyOf);
    const foreign = await session(path, other, bodyOf);
    expect(native.share).toBeGreaterThan(0.9);
    expect(foreign.share).toBeGreaterThan(0.9);
    expect(foreign.usd / native.usd).toBeLessThanOrEqual(1.1);
  },
  60_000,
);
