import { type ErrorObject, errorObject, type Refusal, refusalHeaders } from "../../units/errors/refusal.ts";

/**
 * What a WebSocket gets for an error (developers.openai.com, "WebSocket mode"): the specification's error object with
 * its status and the headers that HTTP would have had; and next to the specification's codes, those of the protocol, by
 * which clients know what to do about their connection.
 */
const PROTOCOL_ERRORS = {
  previous_response_not_found: (id: string) => ({
    message: `Previous response with id '${id}' not found. Send the whole conversation in \`input\`, without \`previous_response_id\`.`,
    param: "previous_response_id",
  }),
  invalid_stream_id: () => ({
    message:
      "The 'stream_id' field must be a non-empty string with at most 256 characters and may only contain letters, numbers, underscores, hyphens, and periods.",
    param: "stream_id",
  }),
  websocket_stream_limit_reached: (most: string) => ({
    message: `This WebSocket connection has reached its maximum number of distinct stream IDs (${most}). Reuse an existing stream_id or open a new WebSocket connection.`,
    param: "stream_id",
  }),
  websocket_connection_limit_reached: (minutes: string) => ({
    message: `Responses websocket connection limit reached (${minutes} minutes). Create a new websocket connection to continue.`,
    param: null,
  }),
} as const satisfies Record<string, (detail: string) => { message: string; param: string | null }>;

export type ProtocolCode = keyof typeof PROTOCOL_ERRORS;

export class ProtocolError {
  constructor(
    readonly code: ProtocolCode,
    readonly message: string,
    readonly param: string | null,
  ) {}
}

export function protocolError(code: ProtocolCode, detail = ""): ProtocolError {
  const { message, param } = PROTOCOL_ERRORS[code](detail);
  return new ProtocolError(code, message, param);
}

export function errorEvent(
  why: Refusal | ProtocolError,
  streamId: string | null,
  { baseUrl, receipt }: { readonly baseUrl: string; readonly receipt: string },
): string {
  if (why instanceof ProtocolError) {
    const { code, message, param } = why;
    return spelt(400, { type: "invalid_request_error", code, message, param }, {}, streamId);
  }
  const headers = { "x-gateway-receipt": receipt, ...refusalHeaders(why) };
  return spelt(why.status, errorObject(why, baseUrl), headers, streamId);
}

export function errorAnswerEvent({ status, headers, body }: ErrorOverHttp, streamId: string | null): string {
  const { error } = JSON.parse(Buffer.from(body).toString()) as { error: ErrorObject };
  const shown = Object.entries(headers).filter(([name]) => !OF_HTTP.has(name));
  return spelt(status, error, Object.fromEntries(shown), streamId);
}

interface ErrorOverHttp {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
}

const OF_HTTP = new Set(["content-type", "connection", "request-id", "x-request-id"]);

/** Codex reads the headers next to the error, OpenAI's own types have them within it. */
const spelt = (
  status: number,
  error: object,
  headers: Readonly<Record<string, string>>,
  streamId: string | null,
): string =>
  JSON.stringify({
    type: "error",
    status,
    ...(streamId === null ? {} : { stream_id: streamId }),
    error: { ...error, headers },
    headers,
  });
