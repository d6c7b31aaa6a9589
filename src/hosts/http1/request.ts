import { assert } from "../../units/assert.ts";
import type { Destination, HostCall } from "../transport.ts";
import { type HostEndpoint, targetOf } from "./endpoint.ts";

/** A request as it goes out: usually one buffer, so that it leaves in one packet. Its taker shortens it. */
export type RequestBytes = Uint8Array[];

/** What a request says, wherever it goes. */
interface RequestParts extends Pick<HostCall, "headers" | "body"> {
  readonly to: Pick<Destination, "method" | "path" | "headers">;
}

/** Up to here, one copy is cheaper than a second system call. */
const JOINED_BODY_MAX = 64 * 1024;
/** The same of a part of a longer body. */
const JOINED_PART_MAX = 16 * 1024;

/** `start` is what `headStart` made of the call's destination. */
export function encodeRequest({ to, headers, body }: RequestParts, start: Uint8Array): RequestBytes {
  // Joined at the end: each `+=` would leave a string behind, three for each field.
  const parts: string[] = [];
  for (const name in headers) {
    if (!Object.hasOwn(to.headers, name)) addField(parts, name, headers[name]!);
  }
  const length = lengthOf(body ?? []);
  if (body !== null || to.method === "POST") parts.push("content-length: ", String(length), "\r\n");
  parts.push("\r\n");
  const rest = parts.join("");
  const joined = body !== null && length <= JOINED_BODY_MAX;
  let at = start.length + rest.length;
  const bytes = Buffer.allocUnsafe(at + (joined ? length : 0));
  bytes.set(start);
  bytes.write(rest, start.length, "latin1");
  if (body === null) return [bytes];
  if (!joined) return coalesced([bytes, ...body]);
  for (const part of body) {
    bytes.set(part, at);
    at += part.length;
  }
  return [bytes];
}

function lengthOf(parts: readonly Uint8Array[]): number {
  let length = 0;
  for (const part of parts) length += part.length;
  return length;
}

/** Short neighbours become one. */
function coalesced(parts: readonly Uint8Array[]): Uint8Array[] {
  const all: Uint8Array[] = [];
  let last: Uint8Array[] = [];
  for (const part of parts) {
    if (part.length <= JOINED_PART_MAX) {
      last.push(part);
      continue;
    }
    if (last.length > 0) all.push(Buffer.concat(last));
    all.push(part);
    last = [];
  }
  if (last.length > 0) all.push(Buffer.concat(last));
  return all;
}

/** The request line, and the header fields that all requests to the destination have. */
export function headStart({ method, path, headers }: RequestParts["to"], endpoint: HostEndpoint): Uint8Array {
  const target = targetOf(endpoint, path);
  assert(TARGET.test(target), "request path holds a byte that HTTP does not allow there");
  // Bodies are asked for uncompressed: inflating costs more CPU here than the bytes cost on the way, and a
  // compressed event stream comes in lumps. A host that compresses regardless is understood all the same.
  const parts = [
    `${method} ${target} HTTP/1.1\r\nhost: ${endpoint.authority}\r\n`,
    "connection: keep-alive\r\naccept-encoding: identity\r\n",
  ];
  for (const name in headers) addField(parts, name, headers[name]!);
  return Buffer.from(parts.join(""), "latin1");
}

function addField(parts: string[], name: string, value: string): void {
  if (OWN_FIELDS.has(name)) return;
  // A line break inside a name or a value would begin another header, or another request.
  assert(FIELD_NAME.test(name), "header name holds a byte that HTTP does not allow there");
  assert(FIELD_VALUE.test(value), "header value holds a byte that HTTP does not allow there");
  parts.push(name, ": ", value, "\r\n");
}

/** RFC 9110 §5.6.2 token, lower-case by the seam's contract. */
const FIELD_NAME = /^[a-z0-9!#$%&'*+\-.^_`|~]+$/;
const FIELD_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;
const TARGET = /^\/[\x21-\x7e]*$/;

/**
 * Fields that speak of this connection or of the framing, not of the call; they are the transport's alone.
 */
const OWN_FIELDS: ReadonlySet<string> = new Set([
  "accept-encoding",
  "connection",
  "content-length",
  "expect",
  "host",
  "keep-alive",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);
