import { HostFault } from "../transport.ts";
import { HeaderFields } from "./fields.ts";

/** A final or interim response head (RFC 9112 §4, §5), with what its framing says about the body. */
export interface ResponseHead {
  readonly status: number;
  headers: HeaderFields;
  readonly framing: Framing;
  /** The host will read another request on this socket. */
  readonly keepAlive: boolean;
  /**
   * How long the host says it keeps an idle socket (`Keep-Alive: timeout=`), seconds; null when it does not
   * say.
   */
  readonly keepAliveS: number | null;
}

/** Where the body ends: a number of bytes, its last chunk, or the close of the socket. */
type Framing = number | "chunked" | "close";

/**
 * Some hosts say it unasked, of a socket that was idle. To a request that was just sent it looks like the
 * answer, and the true one would come to the next. RFC 9110, 15.5.9.
 */
const REQUEST_TIMEOUT = 408;

export const HEAD_BYTES_MAX = 64 * 1024;
const FIELDS_MAX = 256;

/**
 * `text` is a head as latin-1, without the blank line that ends it. One walk over its characters, since hosts
 * send twenty fields and more: a regular expression and a split for each line cost twice as much.
 */
export function parseHead(text: string): ResponseHead | HostFault {
  if (!STATUS_LINE.test(text)) return malformed("not an HTTP/1.1 status line");
  const headers = parseFields(text);
  if (headers instanceof HostFault) return headers;

  const http11 = text.startsWith("HTTP/1.1");
  const code = Number(text.slice("HTTP/1.1 ".length, "HTTP/1.1 200".length));
  const framing = framingOf(code, http11, headers);
  if (framing instanceof HostFault) return framing;
  return {
    status: code,
    headers,
    framing,
    keepAlive:
      http11 && framing !== "close" && code !== REQUEST_TIMEOUT && !closes(headers.get("connection")),
    keepAliveS: keepAliveSeconds(headers.get("keep-alive")),
  };
}

function parseFields(text: string): HeaderFields | HostFault {
  const offsets: number[] = [];
  const lineEnd = text.indexOf("\r\n");
  let at = lineEnd < 0 ? text.length : lineEnd + 2;
  for (let fields = 0; at < text.length; fields++) {
    if (fields === FIELDS_MAX) return malformed(`more than ${FIELDS_MAX} header fields`);
    const nameFrom = at;
    // A line that begins with a blank continues the last one (obsolete folding): parsers disagree on it, so
    // nobody may use it.
    while (IS_NAME[text.charCodeAt(at)] === 1) at++;
    if (at === nameFrom || text.charCodeAt(at) !== COLON)
      return malformed("a header field without a valid name");

    let valueFrom = ++at;
    while (isBlank(text.charCodeAt(valueFrom))) valueFrom++;
    while (at < text.length && isFieldText(text.charCodeAt(at))) at++;
    let valueTo = at;
    while (valueTo > valueFrom && isBlank(text.charCodeAt(valueTo - 1))) valueTo--;
    if (at < text.length) {
      if (!text.startsWith("\r\n", at))
        return malformed("a control character or a lone line break in a header field");
      at += 2;
    }
    offsets.push(nameFrom, valueFrom, valueTo);
  }
  return new HeaderFields(text, offsets);
}

/** RFC 9112 §6.3, without its leniencies: two readings of one length are how responses get smuggled. */
function framingOf(status: number, http11: boolean, headers: HeaderFields): Framing | HostFault {
  const transferCoding = headers.get("transfer-encoding");
  const length = headers.get("content-length");
  if (transferCoding !== undefined) {
    if (length !== undefined) return malformed("both transfer-encoding and content-length");
    if (!http11) return malformed("transfer-encoding in an HTTP/1.0 response");
    // `te` is never sent, so no other coding was allowed.
    if (transferCoding.toLowerCase() !== "chunked")
      return malformed("a transfer-encoding other than chunked");
  }
  // Nor is it where it was given twice: "5, 5".
  if (length !== undefined && !CONTENT_LENGTH.test(length))
    return malformed("content-length is not a number");
  if (status < 200 || status === 204 || status === 304) return 0;
  if (transferCoding !== undefined) return "chunked";
  return length === undefined ? "close" : Number(length);
}

const closes = (connection: string | undefined): boolean =>
  connection !== undefined && CLOSE_TOKEN.test(connection);

function keepAliveSeconds(field: string | undefined): number | null {
  const found = field === undefined ? null : KEEP_ALIVE_TIMEOUT.exec(field);
  return found === null ? null : Number(found[1]);
}

const isBlank = (code: number): boolean => code === 0x20 || code === 0x09;
const isFieldText = (code: number): boolean => (code >= 0x20 && code !== 0x7f) || code === 0x09;

export const malformed = (what: string): HostFault =>
  new HostFault("malformed", `The host's response is malformed: ${what}.`);

const COLON = 0x3a;
/** By character code: what may stand in a field name (RFC 9110 §5.6.2). */
const IS_NAME = Uint8Array.from({ length: 256 }, (_, code) =>
  /[A-Za-z0-9!#$%&'*+\-.^_`|~]/.test(String.fromCharCode(code)) ? 1 : 0,
);

const STATUS_LINE = /^HTTP\/1\.[01] [1-9][0-9]{2}(?: [\t\x20-\x7e\x80-\xff]*)?(?:\r\n|$)/;
/** 15 digits stay below 2^53. */
const CONTENT_LENGTH = /^[0-9]{1,15}$/;
const CLOSE_TOKEN = /(?:^|,)[ \t]*close[ \t]*(?:,|$)/i;
const KEEP_ALIVE_TIMEOUT = /(?:^|[,;])[ \t]*timeout[ \t]*=[ \t]*"?([0-9]{1,9})/i;
