import type { GenerationAnswer, GenerationCall } from "../../generation/answer.ts";
import { invalidKey, tooMuchUnpaid } from "../../generation/refusals.ts";
import type { Continuation } from "../../surfaces/responses/conversation-memory.ts";
import { type CreateEvent, requestBody } from "../../surfaces/responses/create-event.ts";
import { type ProtocolError, protocolError } from "../../surfaces/responses/error-event.ts";
import { warmUpStream } from "../../surfaces/responses/warm-up.ts";
import { randomBase58 } from "../../units/base58.ts";
import { type Refusal, refuse, refused } from "../../units/errors/refusal.ts";
import { suspension } from "../../units/errors/suspension-refusal.ts";
import { type BodyRoom, takeRoom } from "../body-room.ts";
import type { HttpDeps } from "../deps.ts";
import { SMALL_BYTES } from "../prompt-body.ts";

/** The client that opened a connection: what every turn of it takes from the request that did. */
export interface TurnSender {
  readonly secret: string;
  readonly headers: Headers;
  blocks(): readonly string[];
  /** The bytes of the message were counted when it came: its sender could not pay. */
  readonly isUnpaid: boolean;
  /** Aborts when the connection is closed. */
  readonly signal: AbortSignal;
}

/**
 * A turn as a request like any other: it begins with the same checks, waits for the same memory, and is decided by
 * generation/generate. The bytes before it are those of the conversation that it continues.
 */
export async function answerTurn(
  event: CreateEvent,
  from: Continuation,
  sender: TurnSender,
  deps: HttpDeps,
): Promise<GenerationAnswer | Uint8Array | Refusal | ProtocolError> {
  const { bodyBytes } = deps.config.settings;
  const bytes = from.bytes + event.bytes;
  if (bytes > bodyBytes) return tooLarge(bodyBytes);
  if (!event.generates) return warmUp(event, bytes, sender, deps);
  const send = (isUnpaid: boolean) => {
    const before = from.items();
    if (before === null) return protocolError("previous_response_not_found", event.previousResponseId!);
    return deps.generation.generate("responses", callOf(requestBody(event, before), sender, isUnpaid));
  };
  if (bytes <= SMALL_BYTES) return send(false);
  const counted = sender.isUnpaid ? event.bytes : 0;
  const room = await roomFor(bytes, counted, sender, deps);
  if (refused(room)) return room;
  try {
    return await send(room.unpaid !== null);
  } finally {
    room.release();
  }
}

const callOf = (
  body: Uint8Array,
  { secret, headers, signal, blocks }: TurnSender,
  isUnpaid: boolean,
): GenerationCall => ({ secret, headers, body, signal, isUnpaid, blocks });

/**
 * A model's answer is not asked for: the conversation is kept for the turn that follows, and the client receives the id as
 * which to continue it. No host is asked, and nothing is charged.
 */
async function warmUp(
  event: CreateEvent,
  bytes: number,
  { secret, blocks }: TurnSender,
  deps: HttpDeps,
): Promise<Uint8Array | Refusal> {
  const { clock, random } = deps;
  const holder = await holderOf(secret, deps);
  if (refused(holder)) return holder;
  const { key, balance } = holder;
  if (balance.suspended !== null) return suspension(balance.suspended, deps.config.settings.contact);
  const waitS = deps.unpaidRequests.waitS(balance.id, blocks, { bytes, writes: false });
  if (waitS !== null) return tooMuchUnpaid(waitS);
  const atS = Math.floor(clock.now() / 1_000);
  return (
    deps.generation.overRate(key) ??
    warmUpStream(event.members, `resp_${randomBase58(ID_CHARACTERS, random)}`, atS)
  );
}

const ID_CHARACTERS = 22;

/** Memory for a large body, as over HTTP, until its answer begins. */
async function roomFor(
  bytes: number,
  counted: number,
  sender: TurnSender,
  deps: HttpDeps,
): Promise<BodyRoom | Refusal> {
  const holder = await holderOf(sender.secret, deps);
  if (refused(holder)) return holder;
  return deps.generation.overRate(holder.key) ?? takeRoom(holder, bytes, sender, deps, counted);
}

async function holderOf(secret: string, { keyDeps, config, clock }: HttpDeps) {
  const holder = await keyDeps.keyring.identify(secret, clock.now());
  return holder ?? invalidKey(config.settings.dashboardUrl);
}

const tooLarge = (limit: number): Refusal =>
  refuse(
    "payload_too_large",
    `The conversation and this turn are larger than ${limit} bytes together. Shorten the conversation, and start it again without \`previous_response_id\`.`,
  );
