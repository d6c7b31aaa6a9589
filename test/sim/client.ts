import type { GenerationAnswer } from "../../src/generation/answer.ts";
import type { generator } from "../../src/generation/generate.ts";
import type { Clock } from "../../src/units/clock.ts";
import type { Auditor, SimulatedRequest } from "./auditor.ts";
import { WORD } from "./hosts.ts";
import { brokenRules, seenIn, seenInWhole } from "./languages.ts";
import type { Random } from "./random.ts";

/** Sends one request and notes what it sees; may leave at any time, or read slowly. */
export class Client {
  private readonly abort = new AbortController();
  private text = "";

  constructor(
    private readonly request: SimulatedRequest,
    private readonly random: Random,
    private readonly clock: Clock,
    private readonly auditor: Auditor,
  ) {}

  async send(body: string, blocks: readonly string[], generate: Generate): Promise<void> {
    const { request, random, clock, abort } = this;
    if (random.chance(0.15)) clock.after(random.below(8_000), () => this.leave());
    const answer = await generate(request.surface, {
      secret: request.key.id,
      headers: new Headers(),
      body: new TextEncoder().encode(body),
      blocks: () => blocks,
      isUnpaid: false,
      signal: abort.signal,
    });
    request.receipt = answer.headers["x-gateway-receipt"] ?? null;
    request.answeredMs = clock.elapsedMs();
    const remaining = answer.headers["x-gateway-open-tier-remaining"];
    request.answer = {
      turn: this.auditor.turn(),
      at: clock.now(),
      atMs: clock.elapsedMs(),
      remaining: remaining === undefined ? null : Number(remaining),
    };
    if (answer.kind === "stream") return this.read(answer);
    if (request.outcome !== "open") return;
    const parsed = JSON.parse(new TextDecoder().decode(answer.body));
    if (answer.status === 200) {
      request.seen = seenInWhole(request.surface, parsed);
      return this.end("complete");
    }
    const { error } = parsed as { error: { code: string; message: string } };
    request.error = error.code;
    request.message = error.message;
    request.retryAfterS = Number(answer.headers["retry-after"] ?? Number.NaN) || null;
    this.end("refused");
  }

  private async read(answer: Extract<GenerationAnswer, { kind: "stream" }>): Promise<void> {
    const { request, random, clock } = this;
    await answer.run({
      write: (bytes) => {
        if (request.outcome !== "open") return false;
        this.text += new TextDecoder().decode(bytes);
        if (random.chance(0.9)) return this.take();
        return new Promise((resolve) => clock.after(random.below(2_000), () => resolve(this.take())));
      },
      close: () => this.judge(),
    });
  }

  /** Whether it still listens. */
  private take(): boolean {
    const { request, text, clock } = this;
    if (request.outcome !== "open") return false;
    if (request.firstWordMs === null && text.includes(WORD_SENT[request.surface]))
      request.firstWordMs = clock.elapsedMs();
    return true;
  }

  private judge(): void {
    const { request, text, clock } = this;
    request.answeredMs = clock.elapsedMs();
    request.seen = seenIn(request.surface, text);
    request.words = request.seen.text.length / WORD.length;
    if (request.outcome !== "open") return;
    request.error = /"code":"(\w+)"/.exec(text)?.[1] ?? null;
    // Hosts that tell usage with every word are passed on as they are.
    const broken = brokenRules(request.surface, text).filter((rule) => !rule.includes("usage"));
    if (broken.length > 0) request.seen = { ...request.seen, illegal: broken.join("; ") };
    if (request.seen.isComplete) request.error = null;
    this.end(request.seen.isComplete ? "complete" : "broken");
  }

  private leave(): void {
    if (this.request.outcome !== "open") return;
    this.end("left");
    this.abort.abort();
  }

  private end(outcome: SimulatedRequest["outcome"]): void {
    this.request.outcome = outcome;
    this.request.endTurn = this.auditor.turn();
  }
}

export type Generate = ReturnType<typeof generator>;

/** How the first word is sent. */
const WORD_SENT = {
  "chat.completions": `"content":"${WORD}`,
  responses: `"delta":"${WORD}`,
  messages: `"text":"${WORD}`,
};
