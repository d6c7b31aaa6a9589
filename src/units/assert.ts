/**
 * A broken invariant: a bug of ours, never a caller's mistake. It ends as `internal_error` at the edge, where
 * the message is dropped; expected refusals are returned as values instead (see units/errors/refusal).
 */
class BrokenInvariant extends Error {
  override name = "BrokenInvariant";
}

export function assert(condition: unknown, invariant: string): asserts condition {
  if (!condition) throw new BrokenInvariant(invariant);
}
