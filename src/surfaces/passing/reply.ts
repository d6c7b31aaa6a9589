import { estimateTokens } from "../../tokens/estimate.ts";
import { NO_OBJECT } from "../host-error.ts";
import { textOf } from "../json/bytes.ts";
import { type Json, type MutableJson, parseObject } from "../json/json.ts";
import type { AnswerMetadata, HostError, Pairing, Usage, Writers } from "../surface.ts";
import { isDeclined } from "../usage.ts";
import { billedJson, type WriteUsage } from "./billed.ts";

export const parseReply = (body: Uint8Array): Record<string, unknown> | null =>
  parseObject(textOf(body, 0, body.length));

/** Reads whole answers in the host's own language, which pass on with the bill in them. */
export function replyReader(
  faultIn: (reply: Json) => HostError | null,
  /** Adds what the model wrote; returns the reply where it may not pass as it came. */
  readTexts: (reply: MutableJson, texts: string[]) => Json | null,
  /** The host ended the answer for policy reasons. */
  isFiltered: (reply: Json) => boolean,
  readUsage: (usage: unknown) => Usage | null,
  writeUsage: WriteUsage,
  /** Who wrote it, where the host may go on with other models by itself: the reply gets their public names. */
  readWriters?: (reply: MutableJson, idOf: NonNullable<AnswerMetadata["idOf"]>) => Writers,
): Pairing["readReply"] {
  return (body, _request, { publicModel, idOf }) => {
    const reply = parseReply(body);
    if (reply === null) return { kind: "fault", error: NO_OBJECT };
    const error = faultIn(reply);
    if (error !== null) return { kind: "fault", error };
    const texts: string[] = [];
    const changed = readTexts(reply, texts);
    const usage = readUsage(reply.usage);
    const writers = idOf === undefined ? undefined : readWriters?.(reply, idOf);
    const model = writers === undefined ? publicModel : idOf!({ first: writers.first, hops: [] });
    const given = changed ?? (writers !== undefined && writers.hops.length > 0 ? reply : null);
    const passed = given === null ? body : Buffer.from(JSON.stringify(given));
    return {
      kind: "reply",
      body: (bill) => billedJson(passed, bill, writeUsage, null, model),
      usage,
      isDeclined: isDeclined(isFiltered(reply), texts.length > 0, usage),
      ...counted(texts),
      ...(writers === undefined ? {} : { writers }),
    };
  };
}

/** What the model wrote in a whole answer, counted cheaply. */
function counted(texts: readonly string[]): { countedTokens: number; texts(): readonly string[] } {
  let tokens = 0;
  for (const text of texts) tokens += estimateTokens(text);
  return { countedTokens: Math.ceil(tokens), texts: () => texts };
}

export function addText(texts: string[], text: unknown): void {
  if (typeof text === "string" && text !== "") texts.push(text);
}
