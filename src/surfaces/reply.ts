import { textOf } from "./bytes.ts";
import { parseObject } from "./json.ts";

/** Null for what is no JSON object. */
export const parseReply = (body: Uint8Array): Record<string, unknown> | null =>
  parseObject(textOf(body, 0, body.length));
