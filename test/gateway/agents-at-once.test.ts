import { afterAll, describe, expect, test } from "bun:test";
import { sse } from "../fakes/behaviours.ts";
import { type Gate, gate } from "../fakes/gate.ts";
import { startFakeHost } from "../fakes/host.ts";
import { messagesThinking } from "../fakes/transcripts.ts";
import { until } from "../fakes/until.ts";
import { open } from "./open.ts";

/**
 * What coding agents send with their first word, several at once, on a key with the limits that a new one gets: $5
 * a day, 400,000 tokens and 60 requests a minute.
 */
const TOOLS = 25;
const AGENTS = 10;
const PROMPT_TOKENS = 21_000;

/** As large as Claude Code's: 25 tools, a long system prompt, the answer's ceiling at all that the model writes. */
function agentsRequest(agent: number): object {
  const says = (topic: string, sentences: number) =>
    Array.from(
      { length: sentences },
      (_, n) => `When you work on ${topic} ${n}, read what is there first, and say what you changed and why.`,
    ).join(" ");
  return {
    model: "claude/big",
    max_tokens: 64_000,
    stream: true,
    thinking: { type: "adaptive" },
    metadata: { user_id: JSON.stringify({ session_id: `session-${agent}` }) },
    system: [
      { type: "text", text: "You are an agent that writes code." },
      { type: "text", text: says("the repository", 200), cache_control: { type: "ephemeral" } },
    ],
    tools: Array.from({ length: TOOLS }, (_, n) => ({
      name: `tool_${n}`,
      description: says(`tool ${n}`, 25),
      input_schema: {
        type: "object",
        properties: {
          path: { type: "string", description: says("paths", 3) },
          limit: { type: "integer", description: says("limits", 3) },
        },
        required: ["path"],
        additionalProperties: false,
      },
    })),
    messages: [{ role: "user", content: [{ type: "text", text: "hi" }] }],
  };
}

const WORDS = ["Hello!"];
/** Some 20,000 tokens, in pieces of 100. */
const LONG_WORDS = Array.from({ length: 200 }, (_, n) => `${n} one two six ten `.repeat(20));
const LONG_TOKENS = 20_100;
const answer = (words: readonly string[], output: number) =>
  messagesThinking(["The user says hi."], words, {
    input: PROMPT_TOKENS + 3,
    cacheWrite: PROMPT_TOKENS,
    output,
  }).events;
const ANSWERS = { short: answer(WORDS, 30), long: answer(LONG_WORDS, LONG_TOKENS) };
const PROMPT_USD = (PROMPT_TOKENS * 3.75 + 3 * 3) / 1e6;

let begins: Gate<void>;
let ends: Gate<void>;
let says: keyof typeof ANSWERS;

const host = await startFakeHost(() => {
  const events = ANSWERS[says];
  const beforeEnd = events.length - 2;
  return sse(events, {
    before: (n) => (n === 0 ? begins.passed : n === beforeEnd ? ends.passed : undefined),
  });
});
const gateway = await open(`
hosts: [{ id: h, base_url: "${host.url}/v1", speaks: [messages] }]
models:
  - id: claude/big
    context_length: 1000000
    max_output_tokens: 64000
    price: { input: 3, output: 15, cache_read: 0.3, cache_write: 3.75 }
    routes: [{ host: h, model: big }]
`);
afterAll(async () => {
  begins.open();
  ends.open();
  await gateway.close();
  await host.close();
});

/** Sends what ten agents begin with, until each is refused or waits for the host. */
async function beginAtOnce(limits: object, answers: keyof typeof ANSWERS) {
  [begins, ends, says] = [gate(), gate(), answers];
  const { key, recovery_secret: bearer } = await gateway.key(20, limits);
  const refusals: string[] = [];
  const before = host.requests.length;
  const replies = Array.from({ length: AGENTS }, async (_, agent) => {
    const reply = await gateway.send("POST", "/v1/messages", { bearer: key, json: agentsRequest(agent) });
    if (reply.status !== 200) refusals.push(reply.text);
    return reply;
  });
  await until(() => host.requests.length - before + refusals.length === AGENTS);
  const me = async () => (await gateway.send("GET", "/v1/me", { bearer: key })).json;
  const receipts = async () => (await gateway.send("GET", "/v1/receipts?limit=100", { bearer })).json.data;
  return { refusals, replies, me, receipts };
}

describe(`${AGENTS} agents begin at once`, () => {
  test("on a new key: none is refused, holds shrink to what the host says, and the bill is exact", async () => {
    expect(JSON.stringify(agentsRequest(0)).length).toBeWithin(85_000, 100_000);
    const { refusals, replies, me } = await beginAtOnce({}, "short");
    expect(refusals).toEqual([]);
    expect((await me()).held_usd).toBeLessThanOrEqual(5);
    begins.open();
    // Besides the prompt, each holds what a host can think before its first token.
    await until(async () => (await me()).held_usd < AGENTS * (PROMPT_USD + 0.13));
    ends.open();
    for (const { status, text } of await Promise.all(replies)) {
      expect([status, text.includes("message_stop")]).toEqual([200, true]);
    }
    const { held_usd, key } = await me();
    expect(held_usd).toBe(0);
    expect(key.used_day_usd).toBeCloseTo(AGENTS * (PROMPT_USD + (30 * 15) / 1e6), 9);
  });

  test("where their prompts at a byte a token do not fit: prompts are counted, those of open requests too", async () => {
    const { refusals, replies, me } = await beginAtOnce({ daily_limit_usd: 3 }, "short");
    expect(refusals).toEqual([]);
    expect((await me()).held_usd).toBeLessThanOrEqual(3);
    begins.open();
    ends.open();
    for (const { status } of await Promise.all(replies)) expect(status).toBe(200);
  });

  test("and write more than the cap has: it is not crossed, and an agent that cannot continue learns what it cost", async () => {
    const { refusals, replies, me, receipts } = await beginAtOnce({ daily_limit_usd: 3 }, "long");
    expect(refusals).toEqual([]);
    begins.open();
    ends.open();
    const ended = await Promise.all(replies);
    const stopped = ended.filter(({ text }) => text.includes("budget_exhausted"));
    const whole = ended.filter(({ text }) => text.includes("message_stop"));
    expect(stopped.length + whole.length).toBe(AGENTS);
    for (const { text } of stopped) expect(text).toContain("The tokens delivered cost $");
    const { held_usd, key } = await me();
    expect(held_usd).toBe(0);
    expect(key.used_day_usd).toBeLessThanOrEqual(3);
    // Nobody was stopped while there was room for much more.
    expect(key.used_day_usd).toBeGreaterThan(2.5);
    const bills: { cost_usd: number; tokens: { output: number } }[] = await receipts();
    expect(bills.reduce((sum, { cost_usd }) => sum + cost_usd, 0)).toBeCloseTo(key.used_day_usd, 9);
    // An answer that comes in one piece, faster than any host writes, is not stopped, but charged as far as it was
    // held.
    const short = bills.filter(({ tokens }) => tokens.output < LONG_TOKENS);
    expect(short.length).toBeGreaterThanOrEqual(Math.max(1, stopped.length));
  });
});
