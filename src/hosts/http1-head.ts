import { HostFault } from "./transport.ts";

/** A final or interim response head (RFC 9112 §4, §5), with what its framing says about the body. */
export interface ResponseHead {
  readonly status: number;
  readonly headers: Map<string, string>;
  readonly framing: Framing;
  /** The host will read another request on this socket. */
  readonly keepAlive: boolean;
  /** How long the host says it keeps an idle socket (`Keep-Alive: timeout=`), seconds; null when it does not say. */
  readonly keepAliveS: number | null;
}

/** Where the body ends: a number of bytes, its last chunk, or the close of the socket. */
export type Framing = number | "chunked" | "close";

export const HEAD_BYTES_MAX = 64 * 1024;
const FIELDS_MAX = 256;

/** `text` is a head as latin-1, without the blank line that ends it. */
export function parseHead(text: string): ResponseHead | HostFault {
  if (STRAY_CONTROL.test(text))
    return malformed("a control character or a lone line break in the response head");
  const lines = text.split("\r\n");
  if (lines.length - 1 > FIELDS_MAX) return malformed(`more than ${FIELDS_MAX} header fields`);
  const status = STATUS_LINE.exec(lines[0]!);
  if (status === null) return malformed("not an HTTP/1.1 status line");

  const headers = new Map<string, string>();
  let repeatedLength = false;
  for (let at = 1; at < lines.length; at++) {
    const line = lines[at]!;
    const colon = line.indexOf(":");
    // A line that begins with a space continues the last one (obsolete folding): parsers disagree on it, so nobody may use it.
    if (colon < 1 || !FIELD_NAME.test(line.slice(0, colon)))
      return malformed("a header field without a valid name");
    const name = line.slice(0, colon).toLowerCase();
    const value = withoutOuterBlanks(line, colon + 1);
    const earlier = headers.get(name);
    if (earlier !== undefined && name === "content-length") repeatedLength = true;
    headers.set(name, earlier === undefined ? value : `${earlier}, ${value}`);
  }
  if (repeatedLength) return malformed("content-length given twice");

  const http11 = status[1] === "1";
  const code = Number(status[2]);
  const framing = framingOf(code, http11, headers);
  if (framing instanceof HostFault) return framing;
  return {
    status: code,
    headers,
    framing,
    keepAlive: http11 && framing !== "close" && !CLOSE_TOKEN.test(headers.get("connection") ?? ""),
    keepAliveS: keepAliveSeconds(headers.get("keep-alive")),
  };
}

/** RFC 9112 §6.3, without its leniencies: two readings of one length are how responses get smuggled. */
function framingOf(status: number, http11: boolean, headers: Map<string, string>): Framing | HostFault {
  const transferCoding = headers.get("transfer-encoding");
  const length = headers.get("content-length");
  if (transferCoding !== undefined) {
    if (length !== undefined) return malformed("both transfer-encoding and content-length");
    if (!http11) return malformed("transfer-encoding in an HTTP/1.0 response");
    // `te` is never sent, so no other coding was allowed.
    if (transferCoding.toLowerCase() !== "chunked")
      return malformed("a transfer-encoding other than chunked");
  }
  if (length !== undefined && !CONTENT_LENGTH.test(length))
    return malformed("content-length is not a number");
  if (status < 200 || status === 204 || status === 304) return 0;
  if (transferCoding !== undefined) return "chunked";
  return length === undefined ? "close" : Number(length);
}

function keepAliveSeconds(field: string | undefined): number | null {
  const found = field === undefined ? null : KEEP_ALIVE_TIMEOUT.exec(field);
  return found === null ? null : Number(found[1]);
}

/** `trim` would also take away bytes above 0x7f that are blank in Unicode. */
function withoutOuterBlanks(line: string, from: number): string {
  let start = from;
  let end = line.length;
  while (start < end && isBlank(line.charCodeAt(start))) start++;
  while (end > start && isBlank(line.charCodeAt(end - 1))) end--;
  return line.slice(start, end);
}

const isBlank = (code: number): boolean => code === 0x20 || code === 0x09;

export const malformed = (what: string): HostFault =>
  new HostFault("malformed", `The host's response is malformed: ${what}.`);

const STRAY_CONTROL = /[^\r]\n|\r(?!\n)|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]/;
const STATUS_LINE = /^HTTP\/1\.([01]) ([1-9][0-9]{2})(?: .*)?$/;
const FIELD_NAME = /^[A-Za-z0-9!#$%&'*+\-.^_`|~]+$/;
/** 15 digits stay below 2^53. */
const CONTENT_LENGTH = /^[0-9]{1,15}$/;
const CLOSE_TOKEN = /(?:^|,)[ \t]*close[ \t]*(?:,|$)/i;
const KEEP_ALIVE_TIMEOUT = /(?:^|[,;])[ \t]*timeout[ \t]*=[ \t]*"?([0-9]{1,9})/i;
