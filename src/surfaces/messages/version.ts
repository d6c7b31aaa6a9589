import type { Json } from "../json/json.ts";

/**
 * Versions of Messages (Anthropic, "API versions"). The newest refuses `temperature`, `top_p` and `top_k` whatever they
 * say, so a request that has one is sent as of the older, unless its client names a version itself.
 */
export const OLDER_VERSION = "2023-06-01";

export const olderVersion = (body: Json): { version?: string } =>
  SAMPLING.some((name) => body[name] !== undefined && body[name] !== null) ? { version: OLDER_VERSION } : {};

const SAMPLING = ["temperature", "top_p", "top_k"];

/** Under which a host reads `fallbacks`, as @anthropic-ai/sdk 1.13.0 documents them. */
export const FALLBACKS_BETA = "server-side-fallback-2026-07-01";
