import { invalid, type Refusal, refuse } from "../../units/errors/refusal.ts";
import { contains, NO_BYTES, textOf } from "../json/bytes.ts";
import { asObject, parseJson } from "../json/json.ts";
import { JsonCursor } from "../json/json-cursor.ts";
import { visitMembers } from "../request.ts";
import { sizeOf } from "./conversation-memory.ts";
import { type ProtocolError, protocolError } from "./error-event.ts";

/**
 * A `response.create` that a client sends over its WebSocket (developers.openai.com, "WebSocket mode"): the body of a
 * request, and next to it what concerns the connection. Its bytes are not parsed here, only looked through: what it asks
 * for is read where every request is, once the conversation that it continues stands before its input.
 */
export interface CreateEvent {
  /** The named lane; null for the default one. */
  readonly streamId: string | null;
  readonly previousResponseId: string | null;
  /** False for a warm-up, which is not answered by a model. */
  readonly generates: boolean;
  /** The input's items as in a JSON array, without its brackets. */
  readonly items: Uint8Array;
  /** All other members, as they came. */
  readonly members: readonly Uint8Array[];
  /** Bytes of all that is kept of it. */
  readonly bytes: number;
}

/** Why an event is none; in the lane that it named, where that could be read. */
export interface MalformedEvent {
  readonly streamId: string | null;
  readonly why: Refusal | ProtocolError;
}

export function readCreateEvent(bytes: Uint8Array): CreateEvent | MalformedEvent {
  const own = new Map<string, Uint8Array>();
  const members: Uint8Array[] = [];
  const doubt = membersOf(bytes, own, members);
  CURSOR.letGo();
  const streamId = streamIdOf(own.get("stream_id"));
  if (typeof streamId === "object" && streamId !== null) return { streamId: null, why: streamId };
  const why = doubt ?? checkMembers(own);
  if (why !== null) return { streamId, why };
  const items = itemsOf(own.get("input"));
  if (items === null) return { streamId, why: invalid("input", "must be a string or an array") };
  return {
    streamId,
    previousResponseId: textIn(own.get("previous_response_id")),
    generates: spelt(own.get("generate")) !== "false",
    items,
    members,
    bytes: members.reduce((sum, { length }) => sum + length + 1, items.length),
  };
}

/** The body of the request over HTTP that asks for the same, behind the items of the conversation so far. */
export function requestBody({ members, items }: CreateEvent, before: readonly Uint8Array[]): Uint8Array {
  const input = joined([...before, items]);
  return Buffer.concat([
    OPEN,
    ...members.flatMap((member) => [member, COMMA]),
    ...(input.length === 0 ? [] : [INPUT, ...input, CLOSE_INPUT]),
    STREAM,
  ]);
}

/** Lists of items as one; empty ones leave no comma. */
function joined(lists: readonly Uint8Array[]): Uint8Array[] {
  const some = lists.filter(({ length }) => length > 0);
  return some.flatMap((list, at) => (at === 0 ? [list] : [COMMA, list]));
}

const OPEN = Buffer.from("{");
const COMMA = Buffer.from(",");
const INPUT = Buffer.from('"input":[');
const CLOSE_INPUT = Buffer.from("],");
const STREAM = Buffer.from('"stream":true}');

/**
 * Results of tools for calls that are in neither the conversation nor the new input: a host may take them and answer
 * anything. Calls are looked for by their id's spelling, which ids of any host have only one of; in so many bytes, and
 * what is beyond them is left to the host.
 */
export function orphanResult({ items }: CreateEvent, before: readonly Uint8Array[]): Refusal | null {
  if (!contains(items, RESULT)) return null;
  const input = parseItems(items).map(asObject);
  const known = new Set(input.filter(isCall).map((call) => call?.call_id));
  const bytes = sizeOf(before);
  let searched = 0;
  for (const [at, item] of input.entries()) {
    const { type, call_id: id } = item ?? {};
    if (typeof type !== "string" || !type.endsWith("_call_output")) continue;
    if (typeof id !== "string" || !PLAIN_ID.test(id) || known.has(id)) continue;
    searched += bytes;
    if (searched > Math.max(bytes, MAX_SEARCHED_BYTES)) return null;
    const spelling = Buffer.from(`"${id}"`);
    if (!before.some((list) => contains(list, spelling)))
      return refuse("invalid_request", `No tool call found for function call output with call_id ${id}.`, {
        param: `input[${at}].call_id`,
      });
    known.add(id);
  }
  return null;
}

/** Some two milliseconds; an agent's conversation has a tenth of that, and its turn a few results. */
const MAX_SEARCHED_BYTES = 8_388_608;

const RESULT = Buffer.from("_call_output");
const PLAIN_ID = /^[\w.:|-]{1,256}$/;

const isCall = (item: Record<string, unknown> | null): boolean =>
  typeof item?.type === "string" && item.type.endsWith("_call");

function parseItems(items: Uint8Array): readonly unknown[] {
  return (parseJson(`[${textOf(items, 0, items.length)}]`) as readonly unknown[] | undefined) ?? [];
}

/** Members that concern the connection, and the input. */
const OWN: readonly string[] = [
  "type",
  "stream_id",
  "previous_response_id",
  "generate",
  "input",
  "stream",
  "stream_options",
  "store",
];
/** Copies the members' bytes; says what keeps them from being read. */
function membersOf(bytes: Uint8Array, own: Map<string, Uint8Array>, others: Uint8Array[]): Refusal | null {
  const doubt = visitMembers(bytes, "event", OWN, CURSOR, {
    pass(name, valueStart) {
      if (name === null) others.push(copyOf(bytes, CURSOR.memberStart, CURSOR.at));
      else own.set(name, copyOf(bytes, valueStart, CURSOR.at));
    },
  });
  if (doubt !== null || CURSOR.isDone) return doubt;
  return refuse("invalid_request", "An event must be one JSON object.");
}

/** A part of the message (as `slice` of a Buffer is) would keep all of it in memory, with however little is kept. */
const copyOf = (bytes: Uint8Array, from: number, to: number): Uint8Array =>
  new Uint8Array(bytes.subarray(from, to));

/** One for all events, because each is looked through without a wait. */
const CURSOR = new JsonCursor();

function checkMembers(own: ReadonlyMap<string, Uint8Array>): Refusal | null {
  const type = textIn(own.get("type"));
  if (type !== "response.create")
    return invalid("type", "must be `response.create`, the only event that is served");
  for (const name of ["generate", "stream"])
    if (!BOOLEAN.has(spelt(own.get(name)))) return invalid(name, "must be true or false");
  const previous = own.get("previous_response_id");
  if (!ABSENT.has(spelt(previous)) && textIn(previous) === null)
    return invalid("previous_response_id", "must be a string");
  // What is kept here is kept for the connection; asking to find it again later cannot be promised.
  return !NOT_STORED.has(spelt(own.get("store")))
    ? invalid("store", "must be false or absent: responses are not stored")
    : null;
}

const ABSENT = new Set(["", "null"]);
const BOOLEAN = new Set(["", "null", "true", "false"]);
const NOT_STORED = new Set(["", "null", "false"]);

/** Null where there is none. */
function streamIdOf(value: Uint8Array | undefined): string | null | ProtocolError {
  if (ABSENT.has(spelt(value))) return null;
  const id = textIn(value);
  return id !== null && STREAM_ID.test(id) ? id : protocolError("invalid_stream_id");
}

const STREAM_ID = /^[\w.-]{1,256}$/;

/** Small values as they are spelt; empty where there is none. */
const spelt = (value: Uint8Array | undefined): string =>
  value === undefined ? "" : textOf(value, 0, Math.min(value.length, MAX_SHORT));

const MAX_SHORT = 1_024;

function textIn(value: Uint8Array | undefined): string | null {
  if (value === undefined || value.length > MAX_SHORT) return null;
  const text = parseJson(textOf(value, 0, value.length));
  return typeof text === "string" ? text : null;
}

const BRACKET = 0x5b;
const QUOTE = 0x22;

/** A text is what the user says. */
function itemsOf(input: Uint8Array | undefined): Uint8Array | null {
  if (input === undefined || spelt(input) === "null") return NO_BYTES;
  if (input[0] === QUOTE) return Buffer.concat([USER, input, CLOSE]);
  if (input[0] !== BRACKET) return null;
  const inner = input.subarray(1, -1);
  return inner.every((byte) => byte <= 0x20) ? NO_BYTES : inner;
}

const USER = Buffer.from('{"type":"message","role":"user","content":');
const CLOSE = Buffer.from("}");
