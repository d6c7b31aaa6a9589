import type { GenerationAnswer } from "../../src/generation/answer.ts";
import type { generator } from "../../src/generation/generate.ts";
import type { Clock } from "../../src/units/clock.ts";
import type { Asked, Auditor } from "./auditor.ts";
import { WORD } from "./hosts.ts";
import { brokenRules, seenIn, seenInWhole } from "./languages.ts";
import type { Random } from "./random.ts";

/** Sends one request and notes what it sees; may leave at any time, or read slowly. */
export class Client {
  private readonly abort = new AbortController();
  private text = "";

  constructor(
    private readonly ask: Asked,
    private readonly random: Random,
    private readonly clock: Clock,
    private readonly auditor: Auditor,
  ) {}

  async send(body: string, blocks: readonly string[], generate: Generate): Promise<void> {
    const { ask, random, clock, abort } = this;
    if (random.chance(0.15)) clock.after(random.below(8_000), () => this.leave());
    const answer = await generate(ask.surface, {
      secret: ask.key.id,
      headers: new Headers(),
      body: new TextEncoder().encode(body),
      blocks: () => blocks,
      isUnpaid: false,
      signal: abort.signal,
    });
    ask.receipt = answer.headers["x-gateway-receipt"] ?? null;
    ask.heardMs = clock.elapsedMs();
    const remaining = answer.headers["x-gateway-open-tier-remaining"];
    ask.answer = {
      turn: this.auditor.turn(),
      at: clock.now(),
      atMs: clock.elapsedMs(),
      remaining: remaining === undefined ? null : Number(remaining),
    };
    if (answer.kind === "stream") return this.read(answer);
    if (ask.outcome !== "open") return;
    const told = JSON.parse(new TextDecoder().decode(answer.body));
    if (answer.status === 200) {
      ask.seen = seenInWhole(ask.surface, told);
      return this.end("complete");
    }
    const { error } = told as { error: { code: string; message: string } };
    ask.error = error.code;
    ask.message = error.message;
    ask.retryAfterS = Number(answer.headers["retry-after"] ?? Number.NaN) || null;
    this.end("refused");
  }

  private async read(answer: Extract<GenerationAnswer, { kind: "stream" }>): Promise<void> {
    const { ask, random, clock } = this;
    await answer.run({
      write: (bytes) => {
        if (ask.outcome !== "open") return false;
        this.text += new TextDecoder().decode(bytes);
        if (random.chance(0.9)) return this.take();
        return new Promise((resolve) => clock.after(random.below(2_000), () => resolve(this.take())));
      },
      close: () => this.judge(),
    });
  }

  /** Whether it still listens. */
  private take(): boolean {
    const { ask, text, clock } = this;
    if (ask.outcome !== "open") return false;
    if (ask.firstWordMs === null && text.includes(WORD_SENT[ask.surface]))
      ask.firstWordMs = clock.elapsedMs();
    return true;
  }

  private judge(): void {
    const { ask, text, clock } = this;
    ask.heardMs = clock.elapsedMs();
    ask.seen = seenIn(ask.surface, text);
    ask.words = ask.seen.text.length / WORD.length;
    if (ask.outcome !== "open") return;
    ask.error = /"code":"(\w+)"/.exec(text)?.[1] ?? null;
    // Hosts that tell usage with every word are passed on as they are.
    const broken = brokenRules(ask.surface, text).filter((rule) => !rule.includes("usage"));
    if (broken.length > 0) ask.seen = { ...ask.seen, illegal: broken.join("; ") };
    if (ask.seen.isComplete) ask.error = null;
    this.end(ask.seen.isComplete ? "complete" : "broken");
  }

  private leave(): void {
    if (this.ask.outcome !== "open") return;
    this.end("left");
    this.abort.abort();
  }

  private end(outcome: Asked["outcome"]): void {
    this.ask.outcome = outcome;
    this.ask.endTurn = this.auditor.turn();
  }
}

export type Generate = ReturnType<typeof generator>;

/** How the first word is told. */
const WORD_SENT = {
  "chat.completions": `"content":"${WORD}`,
  responses: `"delta":"${WORD}`,
  messages: `"text":"${WORD}`,
};
