import { type Refusal, refuse, refused } from "../units/errors/refusal.ts";
import { authenticate, type Identity } from "./authentication.ts";
import { declaredLength, inTime, MIN_BYTES_PER_MS, READ_GRACE_MS, readBody, tooSlow } from "./body.ts";
import { type BodyRoom, takeRoom } from "./body-room.ts";
import type { HttpDeps } from "./deps.ts";
import type { HttpExchange } from "./exchange.ts";
import { type Coding, codingOf, unpacked } from "./unpack.ts";

/**
 * Reads the body of a request with a prompt. A small one is read at once. A large one is worth memory only if
 * its key is valid and below its rate, and only while there is room; until then it stays in the client's
 * socket. `sender` is a secret that has not been looked up yet, or the sender that it belongs to. The exchange
 * keeps the room until its answer has started.
 */
export function readPromptBody(
  exchange: HttpExchange,
  sender: string | Identity,
  declared = declaredLength(exchange.request),
): Promise<Uint8Array | Refusal> | Uint8Array | Refusal {
  const { request } = exchange;
  const { bodyBytes } = exchange.deps.config.settings;
  if (refused(declared)) return declared;
  const length = declared ?? bodyBytes;
  const coding = codingOf(request);
  if (refused(coding)) return coding;
  if (coding !== null && length <= bodyBytes) return readPacked(coding, length, exchange, sender);
  return length <= SMALL_BYTES || length > bodyBytes
    ? readBody(request, bodyBytes, null, declared)
    : readLarge(length, exchange, sender);
}

/** Bodies up to this size are not counted; the number of connections bounds them. */
export const SMALL_BYTES = 65_536;
/** A larger one may take minutes, and others may want its room by then. */
const READ_AT_ONCE_BYTES = 2_097_152;
/** Shorter than the time that others wait for room. */
const CROWDED_GRACE_MS = 4_000;
const CHECK_MS = 1_000;

async function readLarge(
  length: number,
  exchange: HttpExchange,
  sender: string | Identity,
): Promise<Uint8Array | Refusal> {
  const identity = await permittedSender(exchange, sender);
  if (refused(identity)) return identity;
  const room = await roomFor(identity, length, exchange);
  if (refused(room)) return room;
  const body = await readTimed(length, room, exchange);
  if (!refused(body)) room.unpaid?.adjustTo(body.length);
  return body;
}

/**
 * A packed body may become as large as the largest, so only one whose sender is known is unpacked; one that
 * stays small takes no room, and any other gives back what it did not need.
 */
async function readPacked(
  coding: Coding,
  length: number,
  exchange: HttpExchange,
  sender: string | Identity,
): Promise<Uint8Array | Refusal> {
  const { bodyBytes } = exchange.deps.config.settings;
  const identity = await permittedSender(exchange, sender);
  if (refused(identity)) return unread(identity);
  let packed: Uint8Array | Refusal;
  let room: BodyRoom | Refusal;
  if (length <= SMALL_BYTES) {
    packed = await readBody(exchange.request, bodyBytes);
    if (refused(packed)) return packed;
    const small = await unpacked(packed, coding, Math.min(SMALL_BYTES, bodyBytes));
    if (small !== null) return small;
    room = await roomFor(identity, bodyBytes, exchange);
    if (refused(room)) return room;
  } else {
    room = await roomFor(identity, length + bodyBytes, exchange);
    if (refused(room)) return room;
    packed = await readTimed(length, room, exchange);
    if (refused(packed)) return packed;
  }
  const body = await unpacked(packed, coding, bodyBytes);
  if (body === null) return unpacksTooLarge(bodyBytes);
  if (!refused(body)) {
    room.release.keepOnly(body.length);
    room.unpaid?.adjustTo(Math.min(body.length, bodyBytes));
  }
  return body;
}

/** The sender, if it may send a prompt now. */
async function permittedSender(
  exchange: HttpExchange,
  sender: string | Identity,
): Promise<Identity | Refusal> {
  const identity = typeof sender === "string" ? await authenticate(exchange, () => sender) : sender;
  if (refused(identity)) return identity;
  const tooOften = identity.kind === "key" ? exchange.deps.generation.overRate(identity.key) : null;
  return tooOften === null ? identity : unread(tooOften);
}

/** The exchange keeps it until its answer has started. */
async function roomFor(
  identity: Identity,
  length: number,
  exchange: HttpExchange,
): Promise<BodyRoom | Refusal> {
  const room = await takeRoom(identity, length, exchange, exchange.deps);
  if (refused(room)) return unread(room);
  exchange.keepRoom(room.release);
  exchange.isUnpaid = room.unpaid !== null;
  return room;
}

const readTimed = (
  length: number,
  { unpaid }: BodyRoom,
  { request, deps }: HttpExchange,
): Promise<Uint8Array | Refusal> =>
  unpaid === null && length <= READ_AT_ONCE_BYTES && !deps.bodies.prompts.scarce
    ? // All of it at once, which is cheapest, while nobody is waiting for room.
      inTime(readBody(request, deps.config.settings.bodyBytes), length, deps.clock)
    : readAtPace(request, deps);

/**
 * Part by part, which costs 40 µs for a body of 100 kB: what hardly comes is given up while others wait for
 * its room. Otherwise thirty connections that send next to nothing would keep all large bodies out. Having sent
 * quickly before does not help a sender that stops.
 */
async function readAtPace(
  request: Request,
  { clock, config, bodies }: HttpDeps,
): Promise<Uint8Array | Refusal> {
  const late = Promise.withResolvers<Refusal>();
  let checkedMs = clock.elapsedMs();
  let received = 0;
  let behindMs = 0;
  let isLate = false;
  const check = () => {
    const nowMs = clock.elapsedMs();
    behindMs = Math.max(0, behindMs + nowMs - checkedMs - received / MIN_BYTES_PER_MS);
    checkedMs = nowMs;
    received = 0;
    isLate = behindMs > (bodies.prompts.waiting > 0 ? CROWDED_GRACE_MS : READ_GRACE_MS);
    if (isLate) late.resolve(tooSlow());
    else timer = clock.after(CHECK_MS, check);
  };
  const arrived = (bytes: number) => {
    received += bytes;
    return !isLate;
  };
  let timer = clock.after(CHECK_MS, check);
  try {
    return await Promise.race([readBody(request, config.settings.bodyBytes, arrived), late.promise]);
  } finally {
    timer.cancel();
  }
}

const unread = ({ code, message, details }: Refusal): Refusal =>
  refuse(code, message, { ...details, bodyUnread: true });

const unpacksTooLarge = (limit: number): Refusal =>
  refuse(
    "payload_too_large",
    `The body is larger than ${limit} bytes once it is unpacked, which was not done to its end. Send a shorter one.`,
  );
