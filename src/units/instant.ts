import type { EpochMs } from "./clock.ts";

/** What is written in ISO 8601 with a zone; null where that is no instant. */
export function instantOf(written: string): EpochMs | null {
  const [, day] = ISO_8601.exec(written) ?? [];
  const at = Date.parse(written);
  return day === undefined || Number.isNaN(at) || !isInCalendar(day) ? null : (at as EpochMs);
}

/** `Date` takes 30 February for 2 March. */
const isInCalendar = (day: string): boolean => new Date(day).toISOString().startsWith(day);

const ISO_8601 = /^(\d{4}-\d\d-\d\d)T\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:?\d\d)$/;
