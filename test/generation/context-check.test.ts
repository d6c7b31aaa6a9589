import { expect, test } from "bun:test";
import { checkContext } from "../../src/generation/context-check.ts";
import type { ConversationSize } from "../../src/generation/prompt-sizes.ts";
import type { Plan } from "../../src/routing/plan.ts";
import type { GenerationRequest } from "../../src/surfaces/surface.ts";
import { model, route } from "../routing/world.ts";

const PLAN = {
  candidates: [{ model: model("a/b", [route("h")], { contextLength: 1_000 }) }],
} as unknown as Plan;

/** Whether a text that has so many tokens at most, and about so many, may not fit into 1,000. */
function doubtOf(bytes: number, most = bytes, estimate = most) {
  const request = { promptBound: bytes, mediaTokens: 0 } as GenerationRequest;
  return checkContext(request, PLAN, () => ({ most, estimate }) as ConversationSize)?.doubt ?? null;
}

test.each<[string, Parameters<typeof doubtOf>, ReturnType<typeof doubtOf>]>([
  ["half of it in bytes: no count is needed, nor remembered", [500], null],
  ["more, which fits all the same", [501], "none"],
  ["at most as much as it takes", [4_000, 1_000], "none"],
  ["perhaps more, and about as much as it takes", [4_000, 1_001, 1_000], "small"],
  ["about more than it takes", [4_000, 1_002, 1_001], "large"],
])("a prompt of %s", (_what, sizes, doubt) => {
  expect(doubtOf(...sizes)).toBe(doubt);
});
