import type { RequestTrace } from "../ledger/receipt.ts";
import type { Allowance } from "../ledger/reservation.ts";
import type { InlinePayment } from "../payments/rails/x402/inline.ts";
import { MAX_SESSION } from "../routing/conversation.ts";
import { sessionOf } from "../routing/session-ids.ts";
import type { GenerationRequest, Surface } from "../surfaces/surface.ts";
import type { EpochMs } from "../units/clock.ts";
import { errorObject, type Refusal, refusalHeaders } from "../units/errors/refusal.ts";
import { newReceiptId, type ReceiptId } from "../units/id.ts";
import type { Trace } from "../units/trace-context.ts";
import type { GenerationCall, WholeAnswer } from "./answer.ts";
import type { GenerationDeps, GenerationSettings } from "./deps.ts";

export interface ArrivedRequest {
  readonly id: ReceiptId;
  readonly at: EpochMs;
  /** Monotonic. */
  readonly startedMs: number;
  readonly surface: Surface;
  readonly call: GenerationCall;
  readonly settings: GenerationSettings;
  readonly trace: Trace | null;
}

export function arrived(surface: Surface, call: GenerationCall, deps: GenerationDeps): ArrivedRequest {
  const at = deps.clock.now();
  return {
    id: newReceiptId(at, deps.random),
    at,
    startedMs: deps.clock.elapsedMs(),
    surface,
    call,
    settings: deps.settings(),
    trace: deps.reporting.openTrace(call.headers),
  };
}

export function requestTrace(
  { trace, startedMs, at: startedAt, call }: ArrivedRequest,
  request: GenerationRequest | null,
): RequestTrace | null {
  if (trace === null) return null;
  const named = request === null || !trace.sampled ? null : sessionOf(call.headers, request.json);
  return { ...trace, startedAt, startedMs, conversation: named?.slice(0, MAX_SESSION) ?? null };
}

/** What every answer says of its request, in headers. */
export interface ReportedState {
  /** Open Tier allowances that the request draws on; empty on the paid tier. */
  readonly allowances: readonly Allowance[];
  /** Set from the request's turn to pay for credit itself. */
  readonly payment: InlinePayment | null;
}

export function headersOf(
  contentType: string,
  { id }: ArrivedRequest,
  { allowances, payment }: ReportedState,
  deps: Pick<GenerationDeps, "ledger" | "clock">,
): Record<string, string> {
  const headers: Record<string, string> = {
    "content-type": contentType,
    "x-gateway-receipt": id,
    "x-request-id": id,
    "request-id": id,
  };
  if (allowances.length > 0) {
    const remaining = deps.ledger.remaining(allowances, deps.clock.now());
    if (remaining !== null) headers["x-gateway-open-tier-remaining"] = String(remaining);
  }
  if (payment?.response != null) headers["payment-response"] = payment.response;
  return headers;
}

export function errorAnswer(
  refusal: Refusal,
  arrival: ArrivedRequest,
  reported: ReportedState,
  deps: Pick<GenerationDeps, "ledger" | "clock">,
): WholeAnswer {
  const { id, surface, settings } = arrival;
  return {
    kind: "whole",
    status: refusal.status,
    headers: { ...headersOf("application/json", arrival, reported, deps), ...refusalHeaders(refusal) },
    body: surface.errorBody(errorObject(refusal, settings.baseUrl), id),
  };
}
