import { expect, test } from "bun:test";
import { epochMs } from "../../src/units/clock.ts";
import { WINDOW_KINDS, type WindowKind, windowAt } from "../../src/units/window.ts";

test.each<[WindowKind, string, string, string | null]>([
  ["day", "2026-02-28T23:59:59.999Z", "2026-02-28T00:00:00.000Z", "2026-03-01T00:00:00.000Z"],
  ["day", "2026-03-01T00:00:00.000Z", "2026-03-01T00:00:00.000Z", "2026-03-02T00:00:00.000Z"],
  ["week", "2026-11-22T23:00:00.000Z", "2026-11-16T00:00:00.000Z", "2026-11-23T00:00:00.000Z"],
  ["week", "2026-11-23T00:00:00.000Z", "2026-11-23T00:00:00.000Z", "2026-11-30T00:00:00.000Z"],
  ["month", "2024-02-29T12:00:00.000Z", "2024-02-01T00:00:00.000Z", "2024-03-01T00:00:00.000Z"],
  ["month", "2026-12-31T23:59:59.999Z", "2026-12-01T00:00:00.000Z", "2027-01-01T00:00:00.000Z"],
  ["total", "2026-12-31T23:59:59.999Z", "1970-01-01T00:00:00.000Z", null],
])("the %s of %s runs from %s to %s", (kind, at, from, to) => {
  const window = windowAt(kind, epochMs(Date.parse(at)));
  expect(new Date(window.startsAt).toISOString()).toBe(from);
  expect(window.resetsAt === null ? null : new Date(window.resetsAt).toISOString()).toBe(to);
});

test("every kind of window is listed", () => {
  const kinds = { day: 0, week: 0, month: 0, total: 0 } satisfies Record<WindowKind, 0>;
  expect<string[]>([...WINDOW_KINDS]).toEqual(Object.keys(kinds));
});
