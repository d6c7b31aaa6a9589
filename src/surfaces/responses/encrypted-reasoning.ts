import { asObject, type Json } from "../json/json.ts";
import type { BodyChanges } from "../request/body-changes.ts";
import { mayHoldSeals, withoutSeals } from "../vocabulary/seal.ts";
import { ENCRYPTED } from "./request-reader.ts";

/**
 * A client that leaves `store` at OpenAI's default believes that its host remembers thoughts by their ids, as
 * OpenAI's Agents SDK does: it asks for no encrypted ones, and sends bare ids back. The host keeps nothing,
 * and refuses a whole conversation for one id that it does not find ("Items are not persisted when `store` is
 * set to false"). So thoughts travel with the client: encrypted ones are asked for in its stead, and those
 * that no host could read stay out.
 */
export function withReadableThoughts(
  input: readonly unknown[],
  body: Uint8Array,
  omitted: Set<string>,
): readonly unknown[] {
  const unsealed = mayHoldSeals(body) ? (withoutSeals(input) as unknown[]) : input;
  const readable = unsealed.some(isBareId) ? unsealed.filter((item) => !isBareId(item)) : unsealed;
  if (readable !== input) omitted.add("reasoning");
  return readable;
}

/**
 * Only where the client speaks of reasoning: models that have none refuse to be asked ("Encrypted content is
 * not supported").
 */
export function requestEncrypted({ store, reasoning, include }: Json, changes: BodyChanges): void {
  if (store === false || !thinks(reasoning)) return;
  const included = Array.isArray(include) ? include : [];
  if (included.includes(ENCRYPTED)) return;
  changes.set("include", JSON.stringify([...included, ENCRYPTED]));
}

function thinks(reasoning: unknown): boolean {
  const { effort, summary } = asObject(reasoning) ?? {};
  return (typeof effort === "string" && effort !== "none") || typeof summary === "string";
}

/**
 * Thoughts of which there is nothing but the name, and perhaps a summary, which is not read back. Open
 * models' have `content`.
 */
function isBareId(value: unknown): boolean {
  const item = asObject(value);
  if (item?.type !== "reasoning") return false;
  const { encrypted_content: encrypted, content } = item;
  const isEncrypted = typeof encrypted === "string" && encrypted !== "";
  return !isEncrypted && !(Array.isArray(content) && content.length > 0);
}
