import { textOf } from "./bytes.ts";
import { parseObject } from "./json.ts";
import { findMember, replaceSpan } from "./json-members.ts";

/** The answer with its top-level `model` put back, everything else as it came. */
export function withModel(body: Uint8Array, publicModel: string): Uint8Array {
  const member = findMember(body, "model", 0, body.length);
  return member === null
    ? body
    : replaceSpan(body, member.valueStart, member.end, Buffer.from(JSON.stringify(publicModel)));
}

/** Null for what is no JSON object. */
export const parseReply = (body: Uint8Array): Record<string, unknown> | null =>
  parseObject(textOf(body, 0, body.length));
