import type { FinishedRequest } from "../ledger/receipt.ts";
import { type Clock, isoTime } from "../units/clock.ts";
import { ERRORS } from "../units/errors/codes.ts";
import { usdFromNano } from "../units/usd.ts";
import { Batches } from "./batches.ts";

/**
 * Writes one line of JSON for each generation request. It never contains
 * prompts, answers, keys or their hashes, addresses, hosts' sentences (which may quote a prompt), or names of
 * models that are not in the catalog, because a client may have put anything there.
 */
export class RequestLog extends Batches<FinishedRequest> {
  constructor(
    private readonly write: LogWriter,
    clock: Clock,
    private readonly knows: (model: string) => boolean,
  ) {
    super(clock, { maxQueued: MAX_QUEUED, maxBatch: MAX_QUEUED, delayMs: FLUSH_MS });
  }

  add(done: FinishedRequest): void {
    this.push(done);
  }

  protected async leave(batch: readonly FinishedRequest[]): Promise<boolean> {
    await this.write(batch.map((done) => `${this.line(done)}\n`).join(""));
    return true;
  }

  private line(done: FinishedRequest): string {
    const { tokens, errorCode, firstTokenMs, totalMs, trace } = done;
    return JSON.stringify({
      at: isoTime(done.createdAt),
      event: "request",
      receipt: done.id,
      key_id: done.keyId,
      surface: done.surface,
      model_requested: this.knows(done.modelRequested) ? done.modelRequested : null,
      model: done.model,
      host: done.host,
      stream: done.stream,
      state: done.state,
      status: statusOf(done),
      error_code: errorCode,
      attempts: done.attempts.map(({ host, outcome, ms, status, fault }) => ({
        host,
        outcome,
        ms: Math.round(ms),
        status,
        fault,
      })),
      tokens: {
        input: tokens.input,
        cache_read: tokens.cacheRead,
        cache_write: tokens.cacheWrite,
        output: tokens.output,
        reasoning: tokens.reasoning,
      },
      cost_usd: usdFromNano(done.cost),
      first_token_ms: firstTokenMs === null ? null : Math.round(firstTokenMs),
      total_ms: totalMs === null ? null : Math.round(totalMs),
      ...(trace === null ? {} : { trace_id: trace.traceId }),
    });
  }
}

/** Resolves once the text is taken; new lines wait until then. */
export type LogWriter = (text: string) => Promise<void>;

/** The HTTP status that the answer began with. */
export function statusOf({ errorCode, firstTokenMs, host }: FinishedRequest): number {
  const started = host !== null && firstTokenMs !== null;
  return errorCode === null || started ? OK : ERRORS[errorCode].status;
}

const OK = 200;
const MAX_QUEUED = 10_000;
const FLUSH_MS = 100;
