import type { Key } from "../customers/keys/key.ts";
import { withCeiling } from "../surfaces/messages/changed-request.ts";
import { SURFACES } from "../surfaces/surfaces.ts";
import { type Refusal, refused } from "../units/errors/refusal.ts";
import { MAX_COUNT_MS } from "./counting/counting.ts";
import { PromptCount, type PromptCountDeps } from "./prompt-count.ts";
import { readUnpaid } from "./unpaid-request.ts";

/**
 * Input tokens of a Messages request, as Anthropic's endpoint for that counts them; estimated where the
 * balance has had too many counted, or too much is waiting.
 */
export async function countMessages(
  body: Uint8Array,
  { key, blocks, isUnpaid, signal }: CountRequester,
  deps: CountTokensDeps,
): Promise<number | Refusal> {
  const call = { blocks: () => blocks, signal };
  const countRequest = { surface: "messages", body, counting: true } as const;
  const request = isUnpaid
    ? (await readUnpaid(countRequest, call, deps)).read
    : SURFACES.messages.readRequest(withCeiling(body));
  if (refused(request)) return request;
  const unnamed = deps.nameRefusal(request.model, key);
  if (unnamed !== null) return unnamed;
  const prompt = new PromptCount(request, key.balanceId, deps, call, MAX_COUNT_MS);
  return (await prompt.text()) ?? request.promptEstimate;
}

/** Who wants to know how many tokens a prompt has, and from which network blocks, the narrowest first. */
export interface CountRequester {
  readonly key: Key;
  readonly blocks: readonly string[];
  /** The body is large, and its sender could not pay for so much. */
  readonly isUnpaid: boolean;
  readonly signal: AbortSignal;
}

export interface CountTokensDeps extends PromptCountDeps {
  nameRefusal(model: string, key: Key): Refusal | null;
}
