import type { SurfaceName } from "../../catalog/catalog.ts";
import { contains } from "../json/bytes.ts";
import { asObject } from "../json/json.ts";
import type { Seal } from "./conversation.ts";

/**
 * Carries a seal (a signature of reasoning, or encrypted reasoning) inside another language. A client keeps
 * it as the opaque text for which its language has room, and sends it back; the tag says which family can
 * read it. A family is the language that it was made in plus the author of the model.
 */
export const familyOf = (surface: SurfaceName, publicModel: string): string =>
  `${surface}/${encodeURIComponent(publicModel.split("/")[0]!)}`;

export const sealText = ({ family, kind, data }: Seal): string => `${MARK}${family}:${kind}:${data}`;

/** Null for a text that the gateway did not make. */
export function readSeal(text: unknown): Seal | null {
  const found = typeof text === "string" ? SEALED.exec(text) : null;
  return found === null
    ? null
    : { family: found[1]!, kind: found[2] as Seal["kind"], data: text!.toString().slice(found[0].length) };
}

/** Whether a body may hold seals: a cheap look, before anything is parsed for them. */
export const mayHoldSeals = (body: Uint8Array): boolean => contains(body, MARK_BYTES);

/**
 * Messages or items without the thoughts that were sealed in another language. A client that is served by
 * hosts of its own language now would send them to a host that cannot read them, and be refused.
 */
export function withoutSeals(value: unknown): unknown {
  return Array.isArray(value) ? value.flatMap((item) => withoutSealsIn(item)) : value;
}

function withoutSealsIn(item: unknown): unknown[] {
  const object = asObject(item);
  if (object === null) return [item];
  if (CARRIERS.some((member) => readSeal(object[member]) !== null)) return [];
  let cleaned = object;
  for (const member of NESTING) {
    const inner = object[member];
    if (!Array.isArray(inner)) continue;
    const left = withoutSeals(inner) as unknown[];
    if (left.length === inner.length) continue;
    // A message of nothing but thoughts would be empty, which no host takes.
    if (left.length === 0 && member === "content") return [];
    cleaned = { ...cleaned, [member]: left };
  }
  return [cleaned];
}

const MARK = "gwseal:1:";
const MARK_BYTES = Buffer.from(MARK);
const SEALED = /^gwseal:1:([a-z.]+\/[^:]*):(signature|redacted|encrypted|call):/;

/** Where the three languages keep a seal, and where they nest what holds one. */
const CARRIERS = ["signature", "data", "encrypted_content"];
const NESTING = ["content", "reasoning_details"];
