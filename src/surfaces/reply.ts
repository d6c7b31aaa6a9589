import { replaceSpan, textOf } from "./bytes.ts";
import { parseObject } from "./json.ts";
import { JsonCursor } from "./json-cursor.ts";

/** The answer with its top-level `model` put back, everything else as it came. */
export function withModel(body: Uint8Array, publicModel: string): Uint8Array {
  CURSOR.begin(body, 0, body.length);
  const has = CURSOR.passMember("model");
  const { valueStart, at: valueEnd } = CURSOR;
  CURSOR.letGo();
  return has ? replaceSpan(body, valueStart, valueEnd, Buffer.from(JSON.stringify(publicModel))) : body;
}

/** One for all answers, because each is read without a wait. */
const CURSOR = new JsonCursor();

/** Null for what is no JSON object. */
export const parseReply = (body: Uint8Array): Record<string, unknown> | null =>
  parseObject(textOf(body, 0, body.length));
