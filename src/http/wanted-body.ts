import { type Refusal, refuse, refused } from "../errors/refusal.ts";
import type { Release } from "../limits/byte-budget.ts";
import { readBody } from "./body.ts";
import type { HttpDeps } from "./deps.ts";
import type { Exchange } from "./endpoint.ts";
import { type Identity, identify } from "./identity.ts";

/**
 * The body of a request that brings a prompt. A small one is read at once. A large one is worth memory only for a key that
 * is good and has not reached its rate, and only while there is room: until then it stays in the client's socket. The
 * sender is a secret that nobody has looked up yet, or who it turned out to be.
 */
export async function readWanted(
  exchange: Exchange,
  sender: string | Identity,
  deps: HttpDeps,
): Promise<WantedBody | Refusal> {
  const { request } = exchange;
  const { bodyBytes } = deps.settings();
  const declared = request.headers.get("content-length");
  const length = declared === null ? bodyBytes : Number(declared);
  if (length <= SMALL_BYTES || length > bodyBytes) return wanted(await readBody(request, bodyBytes), FREE);
  const identity = typeof sender === "string" ? await identify(exchange, deps, () => sender) : sender;
  if (refused(identity)) return identity;
  const tooOften = identity.kind === "key" ? deps.overRate(identity.key) : null;
  if (tooOften !== null) return unread(tooOften);
  const release = await deps.bodies.take(ownerOf(identity), length, MAX_WAIT_MS, request.signal);
  return release === null ? noRoom() : readHeld(request, length, release, deps);
}

export interface WantedBody {
  readonly bytes: Uint8Array;
  /** Once the answer has begun, or there is none: whoever reads the body must call it. */
  readonly release: Release;
}

const FREE: Release = () => {};

/** Bodies up to here are not counted: the number of connections bounds them. */
const SMALL_BYTES = 65_536;
const MAX_WAIT_MS = 10_000;
/** A body that comes more slowly keeps others waiting for its room. */
const LEAST_BYTES_PER_MS = 100;
const READ_GRACE_MS = 20_000;

async function readHeld(
  request: Request,
  length: number,
  release: Release,
  { desk, settings }: HttpDeps,
): Promise<WantedBody | Refusal> {
  const late = Promise.withResolvers<Refusal>();
  const timer = desk.clock.after(READ_GRACE_MS + length / LEAST_BYTES_PER_MS, () => late.resolve(tooSlow()));
  try {
    return wanted(await Promise.race([readBody(request, settings().bodyBytes), late.promise]), release);
  } catch (error) {
    release();
    throw error;
  } finally {
    timer.cancel();
  }
}

function wanted(body: Uint8Array | Refusal, release: Release): WantedBody | Refusal {
  if (!refused(body)) return { bytes: body, release };
  release();
  return body;
}

const ownerOf = (identity: Identity): string =>
  identity.kind === "key" ? identity.key.lineage : identity.balance.id;

const unread = ({ code, message, details }: Refusal): Refusal =>
  refuse(code, message, { ...details, bodyUnread: true });

const RETRY_S = 5;

const noRoom = (): Refusal =>
  refuse(
    "model_unavailable",
    `The gateway holds as many large request bodies as it has memory for; this one was not read, and nothing was charged. Retry in ${RETRY_S} s.`,
    { retryAfterS: RETRY_S, shouldRetry: true, bodyUnread: true },
  );

const tooSlow = (): Refusal =>
  refuse(
    "invalid_request",
    `The body arrived at less than ${LEAST_BYTES_PER_MS} kB a second and was not read to its end.`,
    { bodyUnread: true },
  );
