import { errorObject, type Refusal, refusalHeaders } from "../units/errors/refusal.ts";
import type { ReceiptId } from "../units/id.ts";

/** An answer whose status is not the first that is declared, or that has headers or written JSON of its own. */
export class JsonReply<T = unknown> {
  constructor(
    readonly status: number,
    /** Undefined for no body. */
    readonly json: T,
    readonly headers: Readonly<Record<string, string>> = {},
    /** The JSON, where it is written already. */
    readonly text: string | null = null,
  ) {}
}

/** One that is answered again and again. */
export const written = <T>(json: T) => new JsonReply(200, json, {}, JSON.stringify(json));

export const list = <Row>(data: readonly Row[]) => ({ object: "list" as const, data });

/** A page of rows, of which one more was requested than fits on it. */
export const page = async <Row, View>(
  rows: readonly Row[],
  limit: number,
  view: (row: Row) => View | Promise<View>,
) => ({
  ...list(await Promise.all(rows.slice(0, limit).map(view))),
  has_more: rows.length > limit,
});

/** A page that says where the next one begins; null: it is the last. */
export const pageBefore = <Row, Id>(data: readonly Row[], next: Id | null) => ({
  ...list(data),
  has_more: next !== null,
  next_before: next,
});

export const replyResponse = ({ status, json, headers, text }: JsonReply, receipt: ReceiptId): Response =>
  new Response(text ?? (json === undefined ? null : JSON.stringify(json)), {
    status,
    headers: { ...headersOf(receipt), ...headers },
  });

/** An answer of another media type than JSON. */
export const replyAs = (type: string, text: string, receipt: ReceiptId): Response =>
  new Response(text, { headers: { ...headersOf(receipt), "content-type": type } });

/** The specification's error body; Anthropic's clients expect `type: "error"` next to it. */
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
