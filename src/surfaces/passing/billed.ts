import { bytesOf, textOf } from "../json/bytes.ts";
import { Edits } from "../json/edits.ts";
import { asObject } from "../json/json.ts";
import { JsonCursor } from "../json/json-cursor.ts";
import type { Billed, Usage } from "../surface.ts";

/** How a language tells usage. */
export type WriteUsage = (tokens: Usage) => object;

/** A usage with the cost in it; with the bill's own tokens where the host reported none. */
export const billedUsage = (
  usage: unknown,
  { tokens, costUsd, more }: Billed,
  write: WriteUsage,
): object => ({
  ...(asObject(usage) ?? write(tokens)),
  ...more,
  cost: costUsd,
});

/**
 * The JSON of a whole answer, or of the event that tells usage last, with the bill and the public name of the
 * model in it, everything else as it came. `within` is the event's member that is the answer, if it has one.
 */
export function billedJson(
  json: Uint8Array,
  bill: Billed,
  write: WriteUsage,
  within: string | null,
  model: string,
): Uint8Array {
  // An exception may have left some.
  EDITS.forget();
  CURSOR.begin(json, 0, json.length);
  if (within !== null && CURSOR.passMember(within)) CURSOR.begin(json, CURSOR.valueStart, CURSOR.at);
  const hasUsage = billMembers(json, bill, write, model);
  const { isDone, at } = CURSOR;
  CURSOR.letGo();
  if (!isDone) {
    EDITS.forget();
    return json;
  }
  if (!hasUsage) {
    const usage = `,"usage":${JSON.stringify(billedUsage(null, bill, write))}`;
    EDITS.replace(at - 1, at - 1, bytesOf(usage));
  }
  return EDITS.applyTo(json);
}

/** Whether there was a usage. */
function billMembers(json: Uint8Array, bill: Billed, write: WriteUsage, model: string): boolean {
  let hasUsage = false;
  CURSOR.enterObject();
  while (CURSOR.nextMember()) {
    const isUsage = CURSOR.isNamed("usage");
    const isModel = CURSOR.isNamed("model");
    const start = CURSOR.at;
    CURSOR.skip();
    if (isModel) EDITS.replace(start, CURSOR.at, bytesOf(JSON.stringify(model)));
    if (!isUsage) continue;
    hasUsage = true;
    const usage = billedUsage(JSON.parse(textOf(json, start, CURSOR.at)), bill, write);
    EDITS.replace(start, CURSOR.at, bytesOf(JSON.stringify(usage)));
  }
  return hasUsage;
}

/** One of each for all answers, because each is billed without a wait. */
const CURSOR = new JsonCursor();
const EDITS = new Edits();
