import { MAX_COUNT_MS } from "../counting/counting.ts";
import { type Refusal, refused } from "../errors/refusal.ts";
import type { Key } from "../keys/key.ts";
import { SURFACES } from "../surfaces/surfaces.ts";
import { type CountingDesk, PromptCount } from "./prompt-count.ts";

/**
 * Input tokens of a Messages request, as Anthropic's endpoint for that counts them; estimated where the
 * balance has had too many counted, or too much is waiting.
 */
export async function countMessages(
  body: Uint8Array,
  { key, blocks, signal }: CountAsker,
  desk: CountDesk,
): Promise<number | Refusal> {
  const request = SURFACES.messages.readRequest(withCeiling(body));
  if (refused(request)) return request;
  const unnamed = desk.nameRefusal(request.model, key);
  if (unnamed !== null) return unnamed;
  const prompt = new PromptCount(
    request,
    key.balanceId,
    desk,
    { blocks: () => blocks, signal },
    MAX_COUNT_MS,
  );
  return (await prompt.text()) ?? request.promptEstimate;
}

/** Who wants to know how many tokens a prompt has, and from which network blocks, the narrowest first. */
export interface CountAsker {
  readonly key: Key;
  readonly blocks: readonly string[];
  readonly signal: AbortSignal;
}

export interface CountDesk extends CountingDesk {
  /** Why the key may not name the model. */
  nameRefusal(model: string, key: Key): Refusal | null;
}

/** That endpoint takes a request without a ceiling. */
function withCeiling(body: Uint8Array): Uint8Array {
  try {
    const json = JSON.parse(new TextDecoder().decode(body)) as Record<string, unknown>;
    if (typeof json !== "object" || json === null || "max_tokens" in json) return body;
    return new TextEncoder().encode(JSON.stringify({ ...json, max_tokens: 1 }));
  } catch {
    return body;
  }
}
