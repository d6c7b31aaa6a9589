import type { Request } from "./history.ts";

/** Clients that send requests, and write down what they saw. */
export class Clients {
  readonly requests: Request[] = [];

  constructor(
    private readonly urlOf: (gateway: string) => string,
    private readonly nowMs: () => number,
  ) {}

  /**
   * Asks for so many tokens, and resolves with what became of it: an answer to its end, or the client gives
   * up.
   */
  async request(gateway: string, key: Secret, tokens: number, stream: boolean): Promise<Request> {
    const sentMs = this.nowMs();
    const answer = await this.send(gateway, key, tokens, stream);
    const request = { key: key.id, gateway, sentMs, endedMs: this.nowMs(), ...answer };
    this.requests.push(request);
    return request;
  }

  private async send(gateway: string, { key }: Secret, tokens: number, stream: boolean): Promise<Answer> {
    const messages = [{ role: "user", content: `tokens: ${tokens}` }];
    const options = stream ? { stream, stream_options: { include_usage: true } } : {};
    let answer = NOTHING;
    try {
      const response = await fetch(`${this.urlOf(gateway)}/v1/chat/completions`, {
        method: "POST",
        headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
        body: JSON.stringify({ model: "test/model", max_tokens: MAX_TOKENS, messages, ...options }),
        signal: AbortSignal.timeout(TIMEOUT_MS),
      });
      answer = { ...answer, status: response.status, receipt: response.headers.get("x-gateway-receipt") };
      const text = await response.text();
      if (response.status !== 200) return { ...answer, code: codeOf(response, text) };
      const whole = stream ? text.endsWith("data: [DONE]\n\n") : isJson(text);
      return { ...answer, costNano: whole ? costOf(text) : null };
    } catch {
      // The connection broke, or there was nobody, or nobody said anything: what became of it, the books will
      // say.
      return answer.status === 200 ? answer : NOTHING;
    }
  }
}

export interface Secret {
  readonly id: string;
  readonly key: string;
}

export const MAX_TOKENS = 100;
const TOKEN_NANO = 10_000;
/** What every request holds: prompts cost nothing here. */
export const WORST_CASE_NANO = MAX_TOKENS * TOKEN_NANO;

const TIMEOUT_MS = 5_000;

type Answer = Pick<Request, "status" | "code" | "receipt" | "costNano">;

const NOTHING: Answer = { status: null, code: null, receipt: null, costNano: null };

/** A 500 that does not say when to come back is a fault that nobody foresaw. */
const codeOf = ({ status, headers }: Response, text: string): string | null =>
  status === 500 && !headers.has("retry-after") ? "unforeseen" : (/"code":"(\w+)"/.exec(text)?.[1] ?? null);

/** By the usage that it reported. */
const costOf = (text: string): number => Number(/"completion_tokens": ?(\d+)/.exec(text)?.[1]) * TOKEN_NANO;

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
