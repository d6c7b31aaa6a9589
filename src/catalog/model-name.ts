/**
 * What a request's `model` asks for. Specification, "What the service does": ids are `<author>/<name>`, automatic routing is
 * `gateway/auto:<variant>`; contract §6: `gateway/auto:free` and `<author>/<name>:free` ask for the Open Tier.
 */
export type ModelName =
  | { readonly kind: "model"; readonly id: string }
  | { readonly kind: "auto"; readonly variant: string }
  /** `id` null: any free model. */
  | { readonly kind: "open"; readonly id: string | null };

const GATEWAY_AUTHOR = "gateway";
export const AUTO_PREFIX = `${GATEWAY_AUTHOR}/auto:`;
export const FREE_SUFFIX = ":free";
export const FREE_VARIANT = "free";

/** `published` tells whether an id is in the catalog: a published id that happens to end in `:free` is itself. */
export function parseModelName(text: string, published: (id: string) => boolean): ModelName {
  if (text.startsWith(AUTO_PREFIX)) {
    const variant = text.slice(AUTO_PREFIX.length);
    return variant === FREE_VARIANT ? { kind: "open", id: null } : { kind: "auto", variant };
  }
  if (text.endsWith(FREE_SUFFIX) && !published(text)) {
    return { kind: "open", id: text.slice(0, -FREE_SUFFIX.length) };
  }
  return { kind: "model", id: text };
}

/** Letters, digits and `._-`; the name may also hold `:` (a tag), `@` and `+`. */
const MODEL_ID = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}\/[A-Za-z0-9][A-Za-z0-9._:@+-]{0,127}$/;

/** The form of a published id; the author `gateway` is the gateway's own. */
export const isModelId = (text: string): boolean =>
  MODEL_ID.test(text) && !text.startsWith(`${GATEWAY_AUTHOR}/`);
