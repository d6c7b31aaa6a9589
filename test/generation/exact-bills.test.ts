import { describe, expect, test } from "bun:test";
import { countTokens } from "gpt-tokenizer/encoding/o200k_base";
import { SURFACE_NAMES, type SurfaceName } from "../../src/catalog/catalog.ts";
import { sse } from "../fakes/behaviours.ts";
import { gate } from "../fakes/gate.ts";
import type { Behaviour } from "../fakes/host.ts";
import { chatText, messagesText, responsesText, type SseEvent } from "../fakes/transcripts.ts";
import { openedPerTest } from "./serving.ts";
import { bookedReceipt, heldNano, requestBody, type TestGatewayOptions } from "./test-gateway.ts";

/**
 * Streams of which no host tells the usage, cut when a number of tokens has arrived that is near to 50, below
 * which a broken one costs nothing. They arrive in pieces that are no tokens, and are more of them than the whole.
 */
const SAMPLES = {
  English:
    "The quick brown fox jumps over the lazy dog, although nobody had asked it to; unsurprisingly, the dog (which had slept since Wednesday) didn't care. Antidisestablishmentarianism wasn't discussed either, and 1,234 other matters were postponed until further notice.",
  code: "export function partition<T>(items: readonly T[], keep: (item: T) => boolean): [T[], T[]] {\n  const yes: T[] = [];\n\tconst no = new Array<T>();\n  for (const item of items) (keep(item) ? yes : no).push(item);\n  return [yes, no]; // O(n)\n}\n",
  JSON: '{"id":"ord_8Fk2","total":1299.5,"lines":[{"sku":"A-1","qty":2,"note":"say \\"hi\\"\\n"},{"sku":"B-22","qty":10,"tags":["x","y z"]}],"shipped":false,"at":"2026-11-22T08:30:00Z","rate":1.5e-7,"none":null}',
  Chinese:
    "人工智能正在改变我们的生活方式。昨天，他在图书馆里读了一本关于量子力学的书，觉得非常有趣；可是最后一章太难了，他决定明天再去请教老师。然后他们一起去吃了麻辣火锅，价格是一百二十八元。",
  emoji: "👋🏽 Hi all 👨‍👩‍👧‍👦! 🇩🇪🇯🇵 ok 🤷‍♀️… 🧑🏿‍🚀🚀 🏳️‍🌈 ❤️‍🔥 done ✅ 🥳🥳🥳 🫠 🪿 👩🏻‍⚕️ 💯 🎉",
} as const;
type Kind = keyof typeof SAMPLES;
const KINDS = Object.keys(SAMPLES) as Kind[];
const COUNTS = [36, 40, 45, 49, 50];

/** The longest beginning of the sample that has no more tokens, filled up to so many. */
function beginningOf(kind: Kind, tokens: number): string {
  let text = "";
  let next = "";
  for (const character of SAMPLES[kind]) {
    next += character;
    if (countTokens(next) <= tokens) text = next;
  }
  while (countTokens(text) < tokens) text += " ok";
  expect(countTokens(text)).toBe(tokens);
  return text;
}

const piecesOf = (text: string): string[] => {
  const characters = [...text];
  return Array.from({ length: Math.ceil(characters.length / 3) }, (_, at) =>
    characters.slice(3 * at, 3 * at + 3).join(""),
  );
};

/** Up to the host's usage and end mark. */
const UNFINISHED: Record<SurfaceName, (pieces: string[]) => readonly SseEvent[]> = {
  "chat.completions": (pieces) => chatText(pieces).events.slice(0, -3),
  responses: (pieces) => responsesText(pieces).events.slice(0, -4),
  messages: (pieces) => messagesText(pieces, { input: 10 }).events.slice(0, -3),
};

const { serving: serve } = openedPerTest();

const serving = async (spoken: SurfaceName, behaviour: Behaviour, options?: TestGatewayOptions) =>
  (await serve([[behaviour, { speaks: [spoken] }]], options)).gateway;

/** What a client has read so far. */
class Reader {
  private readonly decoder = new TextDecoder();
  private events = "";

  constructor(private readonly onText: (text: string) => void) {}

  write(bytes: Uint8Array): boolean {
    this.events += this.decoder.decode(bytes, { stream: true });
    this.onText(this.text);
    return true;
  }

  close(): void {}

  get text(): string {
    let text = "";
    for (const line of this.events.split("\n")) {
      if (!line.startsWith("data: {")) continue;
      const data = JSON.parse(line.slice(6));
      const delta = data.choices?.[0]?.delta?.content ?? data.delta;
      text += typeof delta === "string" ? delta : (delta?.text ?? "");
    }
    return text;
  }
}

/** Sends the whole text, and cuts the stream when the client has read all of it. */
async function cutStream(how: "reset" | "client", client: SurfaceName, spoken: SurfaceName, text: string) {
  const read = gate();
  const events = UNFINISHED[spoken](piecesOf(text));
  const behaviour: Behaviour =
    how === "reset"
      ? sse(events, { before: (n) => (n === events.length ? read.passed : undefined), end: "reset" })
      : (wire, request) =>
          sse(events, { before: (n) => (n === events.length ? request.gone : undefined) })(wire, request);
  const gateway = await serving(spoken, behaviour);
  const leaving = new AbortController();
  const answer = await gateway.send(
    client,
    requestBody(client, { stream: true, max_tokens: 100 }),
    leaving.signal,
  );
  if (answer.kind !== "stream") throw new Error(new TextDecoder().decode(answer.body));
  const reader = new Reader((so) => {
    if (so !== text) return;
    if (how === "reset") read.open();
    // What it leaves in the midst of, it was not given.
    else setImmediate(() => leaving.abort());
  });
  await answer.run(reader);
  const receipt = await bookedReceipt(gateway, answer);
  expect(gateway.faults).toEqual([]);
  expect<number>(await heldNano(gateway)).toBe(0);
  expect<number>(gateway.ledger.lost).toBe(0);
  return receipt;
}

/** “Hello” is a token, its role another, with three marks around them and three behind; messages hosts tell 10. */
const inputAt = (spoken: SurfaceName): number => (spoken === "messages" ? 10 : 8);
/** $1 and $10 a million. */
const usd = (input: number, output: number): number => (input * 1_000 + output * 10_000) / 1e9;

describe.each(KINDS)("%s", (kind) => {
  test.each(COUNTS)("%d tokens, then the host's connection breaks", async (count) => {
    const text = beginningOf(kind, count);
    const receipt = await cutStream("reset", "chat.completions", "chat.completions", text);
    const cost = usd(8, count);
    expect(receipt).toMatchObject({
      state: count < 50 ? "written_off" : "settled",
      write_off: count < 50,
      cost_usd: count < 50 ? 0 : cost,
      write_off_usd: count < 50 ? cost : 0,
      tokens: { input: 8, output: count, source: "counted" },
      error_code: "upstream_error",
    });
  });

  test.each(COUNTS)("%d tokens, then the client leaves", async (count) => {
    const text = beginningOf(kind, count);
    const receipt = await cutStream("client", "chat.completions", "chat.completions", text);
    expect(receipt).toMatchObject({
      state: "cancelled",
      write_off: false,
      cost_usd: usd(8, count),
      tokens: { input: 8, output: count, source: "counted" },
    });
  });

  test("the credit ends: what the client has read is counted, as far as it was held", async () => {
    const long = SAMPLES[kind].repeat(40);
    const gateway = await serving("chat.completions", sse(UNFINISHED["chat.completions"](piecesOf(long))), {
      creditUsd: 0.004,
      settings: { defaultMaxOutputTokens: 200 },
    });
    const answer = await gateway.send("chat.completions", requestBody("chat.completions", { stream: true }));
    if (answer.kind !== "stream") throw new Error(new TextDecoder().decode(answer.body));
    const reader = new Reader(() => {});
    await answer.run(reader);
    const receipt = await bookedReceipt(gateway, answer);
    const written = countTokens(reader.text);
    const affordable = Math.floor((receipt.held_usd * 1e9 - 8 * 1_000) / 10_000 + 1e-6);
    const output = Math.min(written, affordable);
    expect(written).toBeGreaterThan(50);
    expect(reader.text.length).toBeLessThan(long.length);
    expect(receipt).toMatchObject({
      state: "settled",
      error_code: "insufficient_credit",
      cost_usd: usd(8, output),
      tokens: { input: 8, output, source: "counted" },
    });
    // Only what was delivered beyond the hold is lost.
    expect<number>(gateway.ledger.lost).toBe((written - output) * 10_000);
  });
});

describe.each([...SURFACE_NAMES])("%s client", (client) => {
  test.each([...SURFACE_NAMES])(
    "%s host: 49 tokens are written off, 50 are charged, who leaves pays",
    async (spoken) => {
      const input = inputAt(spoken);
      for (const kind of ["English", "Chinese"] as const) {
        const cost = { 49: 0, 50: usd(input, 50) };
        for (const count of [49, 50] as const)
          expect(await cutStream("reset", client, spoken, beginningOf(kind, count))).toMatchObject({
            state: count === 49 ? "written_off" : "settled",
            cost_usd: cost[count],
            tokens: { input, output: count },
          });
        expect(await cutStream("client", client, spoken, beginningOf(kind, 36))).toMatchObject({
          state: "cancelled",
          cost_usd: usd(input, 36),
          tokens: { input, output: 36 },
        });
      }
    },
  );
});
