import { findMember, replaceSpan } from "./json-members.ts";
import { asObject } from "./judge.ts";

/** The answer with its top-level `model` put back, everything else as it came. */
export function withModel(body: Buffer, publicModel: string): Buffer {
  const member = findMember(body, "model", 0, body.length);
  return member === null
    ? body
    : replaceSpan(body, member.valueStart, member.end, JSON.stringify(publicModel));
}

/** Null for what is no JSON object. */
export function parseReply(body: Buffer): Record<string, unknown> | null {
  try {
    return asObject(JSON.parse(body.toString("utf8")));
  } catch {
    return null;
  }
}
