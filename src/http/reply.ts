import { errorObject, type Refusal, refusalHeaders } from "../errors/refusal.ts";
import type { ReceiptId } from "../units/id.ts";

/** What an endpoint answers with, before it becomes a response. */
export class Reply {
  constructor(
    readonly status: number,
    /** Undefined for no body. */
    readonly json: unknown,
    readonly headers: Readonly<Record<string, string>> = {},
  ) {}
}

export const ok = (json: unknown): Reply => new Reply(200, json);
export const created = (json: unknown): Reply => new Reply(201, json);

export const replyResponse = ({ status, json, headers }: Reply, receipt: ReceiptId): Response =>
  new Response(json === undefined ? null : JSON.stringify(json), {
    status,
    headers: { ...headersOf(receipt), ...headers },
  });

/** The specification's error body; Anthropic's clients look for `type: "error"` beside it. */
export function refusalResponse(refusal: Refusal, receipt: ReceiptId, form: ErrorForm): Response {
  return new Response(refusalBody(refusal, receipt, form), {
    status: refusal.status,
    headers: { ...headersOf(receipt), ...refusalHeaders(refusal), ...form.headers },
  });
}

export function refusalBody(refusal: Refusal, receipt: ReceiptId, form: ErrorForm): string {
  const error = errorObject(refusal, form.baseUrl);
  return JSON.stringify(
    form.language === "messages" ? { type: "error", error, request_id: receipt } : { error },
  );
}

export interface ErrorForm {
  readonly baseUrl: string;
  readonly language: "messages" | "plain";
  readonly headers: Readonly<Record<string, string>>;
}

/** Secrets are among what endpoints answer, so no cache on the way may keep an answer. */
const headersOf = (receipt: ReceiptId): Record<string, string> => ({
  "content-type": "application/json",
  "cache-control": "no-store",
  "x-gateway-receipt": receipt,
  "x-request-id": receipt,
  "request-id": receipt,
});
