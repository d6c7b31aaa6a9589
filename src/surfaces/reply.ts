import { replaceSpan, textOf } from "./bytes.ts";
import { parseObject } from "./json.ts";
import { JsonCursor } from "./json-cursor.ts";

/** The answer with its top-level `model` put back, everything else as it came. */
export function withModel(body: Uint8Array, publicModel: string): Uint8Array {
  const cursor = new JsonCursor();
  cursor.begin(body, 0, body.length);
  if (!cursor.passMember("model")) return body;
  return replaceSpan(body, cursor.valueStart, cursor.at, Buffer.from(JSON.stringify(publicModel)));
}

/** Null for what is no JSON object. */
export const parseReply = (body: Uint8Array): Record<string, unknown> | null =>
  parseObject(textOf(body, 0, body.length));
