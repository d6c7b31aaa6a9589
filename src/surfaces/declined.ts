import type { Usage } from "./surface.ts";

/**
 * Whether a host declined: it ended the answer for policy reasons before any of it, with a good status (Anthropic's
 * `refusal`, OpenAI's `content_filter`). Thoughts are part of an answer, also those that the host does not show: it
 * bills them, so the client pays for them. By its usage the host shows that there were some.
 */
export const isDeclined = (isFiltered: boolean, isWritten: boolean, usage: Usage | null): boolean =>
  isFiltered && !isWritten && (usage === null || isNothing(usage));

/** No model wrote anything of it, not even unseen; where several ran, none of them. */
export const isNothing = ({ output, parts = [] }: Usage): boolean =>
  output <= MAX_DECLINING_TOKENS * Math.max(1, parts.length) && parts.every(({ usage }) => isNothing(usage));

/** What hosts count for an answer of nothing: none, or the token at which it ended (Amazon Bedrock, "Fallback credit"). */
const MAX_DECLINING_TOKENS = 1;
