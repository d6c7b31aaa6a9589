import { withoutByteOrderMark } from "../../units/byte-order-mark.ts";
import { type Refusal, refused } from "../../units/errors/refusal.ts";
import { bytesOf } from "../json/bytes.ts";
import { asObject } from "../json/json.ts";
import { parseReply } from "../passing/reply.ts";
import { BodyChanges } from "../request/body-changes.ts";
import type { GenerationRequest } from "../surface.ts";
import { messages } from "./messages.ts";

/**
 * A request as an entry of its `fallbacks` changes it for one model (`BetaFallbackParam`): a member that the entry has
 * replaces the request's, null removes it, and `output_config` is combined member by member.
 */
export function changedRequest(
  request: GenerationRequest,
  members: Readonly<Record<string, unknown>>,
): GenerationRequest | Refusal {
  const changes = new BodyChanges();
  for (const [name, value] of Object.entries(members)) {
    const changed = name === "output_config" ? combined(request.json[name], value) : value;
    changes.set(name, changed === null ? null : JSON.stringify(changed));
  }
  const read = messages.readRequest(changes.applyTo(request.body));
  const { model, requestedModel } = request;
  return refused(read) ? read : { ...read, model, requestedModel };
}

function combined(own: unknown, changed: unknown): object | null {
  if (changed === null) return null;
  const all = Object.entries({ ...asObject(own), ...asObject(changed) });
  return Object.fromEntries(all.filter(([, value]) => value !== null));
}

/** `count_tokens` takes a Messages request without a ceiling, which every other must have. */
export function withCeiling(body: Uint8Array): Uint8Array {
  const json = parseReply(withoutByteOrderMark(body));
  return json === null || "max_tokens" in json ? body : bytesOf(JSON.stringify({ ...json, max_tokens: 1 }));
}
