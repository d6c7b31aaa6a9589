import { hasMoreValues } from "../surfaces/json/json-scan.ts";
import { type Refusal, refuse, refused } from "../units/errors/refusal.ts";
import { declaredLength, inTime, readBody } from "./body.ts";
import type { HttpExchange } from "./exchange.ts";

/**
 * Reads the body of a request without a prompt, as JSON; refused when it is none. An empty one counts as
 * `{}`. Many of these are read before it is known who sends them. So what is larger than anything that makes
 * sense here is read only into a room of its own, `deps.bodies.control`, which prompts do not share, and
 * nobody waits for it: prompts, and small bodies, go on however many large ones come. A client that sends one slowly
 * loses the room.
 */
export async function readControl(exchange: HttpExchange): Promise<unknown> {
  const bytes = await readControlBytes(exchange, exchange.deps.config.settings.bodyBytes);
  if (refused(bytes)) return bytes;
  if (bytes.length === 0) return {};
  if (hasMoreValues(bytes, MAX_VALUES))
    return refuse("invalid_request", `The body has more than ${MAX_VALUES} JSON values.`);
  try {
    return JSON.parse(UTF8.decode(bytes));
  } catch {
    return refuse("invalid_request", "The body is not valid JSON.");
  }
}

/** The same, as it came, of at most so many bytes. */
export async function readControlBytes(
  exchange: HttpExchange,
  bodyBytes: number,
): Promise<Uint8Array | Refusal> {
  const { request } = exchange;
  const declared = declaredLength(request);
  if (refused(declared)) return declared;
  if (declared !== null) {
    const mayBeRead = declared <= SMALL_BYTES || declared > bodyBytes || takeRoom(declared, exchange);
    if (!mayBeRead) return noRoom();
    const reading = readBody(request, bodyBytes, null, declared);
    return declared > SMALL_BYTES ? inTime(reading, declared, exchange.deps.clock) : reading;
  }
  let received = 0;
  let hasRoom = false;
  let isOver = false;
  const reading = readBody(request, bodyBytes, (bytes) => {
    // What comes of a body that was given up must not take room, which nobody would give back.
    if (isOver) return false;
    received += bytes;
    hasRoom ||= received > SMALL_BYTES && takeRoom(bodyBytes, exchange);
    return hasRoom || received <= SMALL_BYTES;
  });
  const body = await inTime(reading, bodyBytes, exchange.deps.clock);
  isOver = true;
  return refused(body) || hasRoom || received <= SMALL_BYTES ? body : noRoom();
}

function takeRoom(bytes: number, exchange: HttpExchange): boolean {
  const release = exchange.deps.bodies.control.takeNow(bytes);
  if (release !== null) exchange.keepRoom(release);
  return release !== null;
}

/** 500 model ids of full length are 100 kB. */
const SMALL_BYTES = 131_072;
/** Parsing takes as long as there are values, not bytes; 500 model ids are the most that make sense. */
const MAX_VALUES = 10_000;
/** For all that are larger than that, together. Parsed, one takes some three times its size. */
export const CONTROL_BODY_MEMORY_BYTES = 16 * 1024 * 1024;
const RETRY_S = 5;

const noRoom = (): Refusal =>
  refuse(
    "rate_limited",
    `The gateway has as many bodies of more than ${SMALL_BYTES} bytes here as it has memory for; this one was not read to its end. Retry in ${RETRY_S} s.`,
    { retryAfterS: RETRY_S, bodyUnread: true },
  );

const UTF8 = new TextDecoder("utf-8", { fatal: true });
