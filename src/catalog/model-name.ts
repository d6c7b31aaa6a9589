/**
 * What a request's `model` may be. Specification, "What the service does": ids are `<author>/<name>`,
 * automatic routing is `gateway/auto:<variant>`; contract §6: `gateway/auto:free` and `<author>/<name>:free`
 * ask for the Open Tier.
 */
const GATEWAY_AUTHOR = "gateway";
export const AUTO_PREFIX = `${GATEWAY_AUTHOR}/auto:`;
export const FREE_SUFFIX = ":free";
export const FREE_VARIANT = "free";
export const FREE_AUTO_MODEL = `${AUTO_PREFIX}${FREE_VARIANT}`;

/** What an automatic route's name has after its prefix; null for every other name. */
export const autoVariant = (name: string): string | null =>
  name.startsWith(AUTO_PREFIX) ? name.slice(AUTO_PREFIX.length) : null;

/** The form that the operator's variants have. */
export const isVariant = (text: string): boolean => VARIANT.test(text);

const VARIANT = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

/** Letters, digits and `._-`; the name may also hold `:` (a tag), `@` and `+`. */
const MODEL_ID = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}\/[A-Za-z0-9][A-Za-z0-9._:@+-]{0,127}$/;

/** The form of a published id; the author `gateway` is the gateway's own. */
export const isModelId = (text: string): boolean =>
  MODEL_ID.test(text) && !text.startsWith(`${GATEWAY_AUTHOR}/`);

/** The host that is built in: it answers without a provider. */
export const SIMULATED_HOST_ID = "sim";
