import { freeMemory, joined } from "../surfaces/json/bytes.ts";
import { atMost, type Clock } from "../units/clock.ts";
import { type Refusal, refuse, refused } from "../units/errors/refusal.ts";
import { nextTurn } from "./event-loop-turn.ts";

/**
 * The request's body, at most `limit` bytes of it. The handler runs once the head has arrived: a length that
 * is declared too large is refused without reading anything, and a body of unknown length when it has grown
 * too large.
 */
export function readBody(
  request: Request,
  limit: number,
  arrived: Arrived | null = null,
  declared = declaredLength(request),
): Promise<Uint8Array | Refusal> | Uint8Array | Refusal {
  if (refused(declared)) return declared;
  if (declared !== null) {
    if (declared > limit) return tooLarge(limit);
    // The server never hands on more than was declared.
    if (arrived === null) return request.bytes();
  }
  if (request.body === null) return NO_BYTES;
  return declared === null
    ? readCounting(request.body, limit, arrived)
    : readDeclared(request.body, declared, arrived);
}

/** Called with each part of a body; false when the rest is not needed. */
export type Arrived = (bytes: number) => boolean;

/**
 * Null where it is not declared, as of a chunked body. The server lets equal lengths pass (RFC 9112 §6.3
 * allows both that and a refusal) and joins them by a comma; what that spells is no number, and no bound
 * holds against it.
 */
export function declaredLength({ headers }: Request): number | null | Refusal {
  const declared = headers.get("content-length");
  if (declared === null) return null;
  const length = Number(declared);
  return Number.isNaN(length) ? severalLengths() : length;
}

/**
 * Into memory that the kernel gives as it is filled. Joining the parts of ten megabytes in the end would keep
 * everybody waiting for as long as copying them takes. Where the client leaves, or is too slow, that memory is free at
 * once, because others get its room.
 */
async function readDeclared(
  body: ReadableStream<Uint8Array>,
  length: number,
  arrived: Arrived | null,
): Promise<Uint8Array> {
  const whole = new Uint8Array(length);
  let end: number | null = null;
  try {
    end = await readInto(whole, body, arrived);
  } finally {
    if (end === null) freeMemory(whole);
  }
  if (end === null) return NO_BYTES;
  return end === length ? whole : whole.subarray(0, end);
}

/** How many bytes there were; null if the rest is not needed. */
async function readInto(
  whole: Uint8Array,
  body: ReadableStream<Uint8Array>,
  arrived: Arrived | null,
): Promise<number | null> {
  const reader = body.getReader();
  let at = 0;
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return at;
    if (arrived?.(value.length) === false) return null;
    whole.set(value, at);
    at += value.length;
    if (value.length < LARGE_PART_BYTES) continue;
    // Each part has memory of its own, which would stay until the next collection: most of the body a second time.
    freeMemory(value);
    // Bun hands over all that a socket has, part by part, before it looks at any other.
    await nextTurn();
  }
}

const LARGE_PART_BYTES = 65_536;

async function readCounting(
  body: ReadableStream<Uint8Array>,
  limit: number,
  arrived: Arrived | null,
): Promise<Uint8Array | Refusal> {
  const reader = body.getReader();
  const chunks: Uint8Array[] = [];
  let length = 0;
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return joined(chunks);
    length += value.length;
    if (length > limit) {
      chunks.length = 0;
      return tooLarge(limit);
    }
    if (arrived?.(value.length) === false) return NO_BYTES;
    chunks.push(value);
  }
}

const tooLarge = (limit: number): Refusal =>
  refuse(
    "payload_too_large",
    `The body is larger than ${limit} bytes and was not read to its end. Send a shorter one.`,
    {
      bodyUnread: true,
    },
  );

const severalLengths = (): Refusal =>
  refuse("invalid_request", "The request has more than one Content-Length header.", {
    param: "Content-Length",
    bodyUnread: true,
  });

const NO_BYTES = new Uint8Array(0);

/** A body that arrives more slowly than this keeps others waiting for its room. */
export const MIN_BYTES_PER_MS = 100;
export const READ_GRACE_MS = 20_000;

/** What is read of a body of so many bytes, or a refusal when it does not come in time. */
export async function inTime(
  reading: Promise<Uint8Array | Refusal> | Uint8Array | Refusal,
  length: number,
  clock: Pick<Clock, "after">,
): Promise<Uint8Array | Refusal> {
  return (await atMost(clock, READ_GRACE_MS + length / MIN_BYTES_PER_MS, reading)) ?? tooSlow();
}

export const tooSlow = (): Refusal =>
  refuse(
    "invalid_request",
    `The body arrived at less than ${MIN_BYTES_PER_MS} kB per second and was not read to its end. Send it again, shorter or over a faster connection.`,
    { bodyUnread: true },
  );
