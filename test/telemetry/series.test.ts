import { expect, test } from "bun:test";
import { prometheusText } from "../../src/telemetry/metric.ts";
import { counters, distributions, labels, MAX_SERIES } from "../../src/telemetry/series.ts";

test("labels are escaped", () => {
  expect(labels({ a: 'say "hi"\\\n' })).toBe('a="say \\"hi\\"\\\\\\n"');
});

test("a histogram counts what is at most each bound", () => {
  const family = distributions("seconds", "Help.", [1, 5]);
  const seconds = family.of(labels({ a: "b" }));
  for (const value of [0.5, 1, 3, 100]) seconds.observe(value);
  expect(prometheusText([family.read()]).trimEnd().split("\n")).toEqual([
    "# HELP seconds Help.",
    "# TYPE seconds histogram",
    'seconds_bucket{a="b",le="1"} 2',
    'seconds_bucket{a="b",le="5"} 3',
    'seconds_bucket{a="b",le="+Inf"} 4',
    'seconds_sum{a="b"} 104.5',
    'seconds_count{a="b"} 4',
  ]);
});

test("beyond the bound, all new series are one, and the known ones count on", () => {
  const family = counters("things", "Help.");
  for (let index = 0; index < MAX_SERIES + 100; index++) family.of(labels({ a: `${index}` })).add(1);
  family.of(labels({ a: "0" })).add(1);
  const lines = prometheusText([family.read()]).trimEnd().split("\n");
  expect(lines).toHaveLength(2 + MAX_SERIES + 1);
  expect(lines).toContain('things{overflow="true"} 100');
  expect(lines).toContain('things{a="0"} 2');
});
