import { type Clock, pause } from "../units/clock.ts";
import type { OtlpTarget } from "./otlp-settings.ts";
import type { Attribute } from "./spans.ts";

/** Posts to a collector, as OTLP over HTTP in JSON. */
export class OtlpSender {
  private stopped = false;

  constructor(
    private readonly target: OtlpTarget,
    private readonly deps: OtlpDeps,
  ) {}

  /** What is sent from now on is tried once. */
  stop(): void {
    this.stopped = true;
  }

  /** False for what did not arrive. OTLP, "Failures": some statuses are worth another try. */
  async send(body: object): Promise<boolean> {
    const text = JSON.stringify(body);
    for (let attempt = 0; ; attempt++) {
      const status = await this.post(text);
      if (status !== null && status.code >= 200 && status.code <= 299) return true;
      const again = status === null || RETRYABLE.has(status.code);
      if (!again || this.stopped || attempt + 1 >= MAX_ATTEMPTS) return false;
      await pause(
        this.deps.clock,
        Math.min(status?.retryAfterMs ?? BACKOFF_MS * 2 ** attempt, MAX_BACKOFF_MS),
      );
    }
  }

  private async post(body: string): Promise<{ code: number; retryAfterMs: number | null } | null> {
    const { url, headers } = this.target;
    try {
      const response = await this.deps.fetch(url, {
        method: "POST",
        headers: { ...headers, "content-type": "application/json" },
        body,
        redirect: "manual",
        signal: AbortSignal.timeout(TIMEOUT_MS),
      });
      await response.body?.cancel();
      const retryAfterS = Number(response.headers.get("retry-after") ?? Number.NaN);
      return {
        code: response.status,
        retryAfterMs: retryAfterS >= 0 ? retryAfterS * 1_000 : null,
      };
    } catch {
      return null;
    }
  }
}

export const SCOPE = { name: "text-generation-gateway" };

export const resourceOf = ({ resource }: OtlpTarget): { readonly attributes: readonly Attribute[] } => ({
  attributes: Object.entries(resource).map(([key, value]) => ({ key, value: { stringValue: value } })),
});

export interface OtlpDeps {
  readonly clock: Clock;
  fetch(url: string, init: RequestInit): Promise<Response>;
}

const TIMEOUT_MS = 10_000;
const MAX_ATTEMPTS = 4;
const BACKOFF_MS = 1_000;
const MAX_BACKOFF_MS = 30_000;
const RETRYABLE = new Set([408, 429, 502, 503, 504]);
