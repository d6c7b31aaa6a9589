import { textOf } from "../surfaces/json/bytes.ts";
import type { GenerationRequest } from "../surfaces/surface.ts";
import type { BalanceId } from "../units/id.ts";
import { sessionOf } from "./session-ids.ts";

/** Names a conversation of one balance; a hash, from which nothing of it can be read back. */
export type ConversationId = number & { readonly __unit: "Conversation" };

/**
 * The conversation that a request is a turn of: what its client calls its session (session-ids), or else its
 * opening, which every later turn repeats: instructions and the first message of the user. It belongs to one balance and
 * one model, because harnesses use several models within a session, for titles say, and each sticks to a
 * host of its own. `turned` is false when it is only known by its opening and holds no answer yet, so that it may be
 * anybody's first turn. `opening` is given where the request was read without its long members.
 */
export function conversationOf(
  request: OpeningRequest & Pick<GenerationRequest, "json" | "model">,
  headers: Headers,
  balance: BalanceId,
  opening: Opening | null = null,
): { readonly conversation: ConversationId; readonly turned: boolean } {
  const started = mixed(mixed(SEED, balance), request.model);
  const named = sessionOf(headers, request.json);
  if (named !== null) {
    return { conversation: finished(mixed(started, named)), turned: true };
  }
  const { hash, turned } = opening ?? openingOf(request);
  return { conversation: finished(mixed(started, hash.toString(36))), turned };
}

/** How a conversation begins, and whether there is an answer yet. */
export interface Opening {
  readonly hash: bigint;
  readonly turned: boolean;
}

export function openingOf(request: OpeningRequest): Opening {
  const { surface, outline } = request;
  const turns = surface === "responses" ? outline.input : outline.messages;
  const instructions = surface === "responses" ? outline.instructions : outline.system;
  const opened = mixedContent(SEED, instructions);
  return Array.isArray(turns)
    ? ofTurns(opened, turns, request)
    : { hash: mixedContent(opened, turns), turned: false };
}

/** OpenRouter's bound; what is longer differs in its beginning or its length. */
export const MAX_SESSION = 256;

/** Turns that are looked at: an opening is short, and the first answer follows it. */
const MAX_TURNS = 32;

type OpeningRequest = Pick<GenerationRequest, "surface" | "body" | "outline" | "list">;

function ofTurns(opened: bigint, turns: readonly unknown[], request: OpeningRequest): Opening {
  let hash = opened;
  let userSeen = false;
  for (let at = 0; at < turns.length && at < MAX_TURNS; at++) {
    const turn = turns[at] as RawTurn | null;
    if (isAnswer(turn)) return { hash, turned: true };
    if (userSeen) continue;
    hash = mixedContent(hash, wholeContent(turn, at, request));
    userSeen = turn?.role === "user";
  }
  return { hash, turned: turns.length > MAX_TURNS };
}

/** Texts of an outline may be cut. */
function wholeContent(turn: RawTurn | null, at: number, { body, list }: OpeningRequest): unknown {
  if (list === null) return turn?.content;
  const whole = JSON.parse(textOf(body, list.turns[2 * at]!, list.turns[2 * at + 1]!)) as RawTurn | null;
  return whole?.content;
}

interface RawTurn {
  readonly role?: unknown;
  readonly type?: unknown;
  readonly content?: unknown;
}

/** A turn of the model; on Responses also a thought or a call of its own. */
const isAnswer = (turn: RawTurn | null): boolean =>
  turn?.role === "assistant" ||
  (turn?.role === undefined && turn?.type !== undefined && turn.type !== "message");

/** Parts of a content that are looked at, and characters of each: more tells no conversations apart. */
const MAX_PARTS = 16;
const MAX_CHARACTERS = 2_048;

/** Texts only: marks on parts, such as cache breakpoints, move from turn to turn. */
function mixedContent(hash: bigint, content: unknown): bigint {
  if (typeof content === "string") return mixed(hash, content);
  if (!Array.isArray(content)) return hash;
  let all = hash;
  for (let at = 0; at < content.length && at < MAX_PARTS; at++) {
    const text = (content[at] as { text?: unknown } | null)?.text;
    if (typeof text === "string") all = mixed(all, text);
  }
  return all;
}

const SEED = 0n;

const mixed = (hash: bigint, text: string): bigint =>
  Bun.hash.wyhash(
    text.length > MAX_CHARACTERS ? `${text.slice(0, MAX_CHARACTERS)}${text.length}` : text,
    hash,
  );

const finished = (hash: bigint): ConversationId =>
  Number(hash & BigInt(Number.MAX_SAFE_INTEGER)) as ConversationId;
