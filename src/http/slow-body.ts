import { atMost, type Clock } from "../units/clock.ts";
import { type Refusal, refuse } from "../units/errors/refusal.ts";

/** A body that arrives more slowly than this keeps others waiting for its room. */
export const MIN_BYTES_PER_MS = 100;
export const READ_GRACE_MS = 20_000;

/** What is read of a body of so many bytes, or a refusal when it does not come in time. */
export async function inTime(
  reading: Promise<Uint8Array | Refusal> | Uint8Array | Refusal,
  length: number,
  clock: Pick<Clock, "after">,
): Promise<Uint8Array | Refusal> {
  return (await atMost(clock, READ_GRACE_MS + length / MIN_BYTES_PER_MS, reading)) ?? tooSlow();
}

export const tooSlow = (): Refusal =>
  refuse(
    "invalid_request",
    `The body arrived at less than ${MIN_BYTES_PER_MS} kB per second and was not read to its end.`,
    { bodyUnread: true },
  );
