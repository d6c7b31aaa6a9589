import { expect, test } from "bun:test";
import { lasting, type Metric, prometheusText, togetherOf } from "../../src/telemetry/metric.ts";

const metric = (more: Partial<Metric>): Metric => ({
  name: "m",
  type: "gauge",
  help: "Help.",
  together: "sum",
  samples: [],
  ...more,
});

test.each<[Metric["together"], string[]]>([
  ["sum", ['m{host="a"} 4', 'm{host="b"} 5']],
  ["mean", ['m{host="a"} 2', 'm{host="b"} 5']],
  ["least", ['m{host="a"} 1', 'm{host="b"} 5']],
  ["apart", ['m{worker="1",host="a"} 1', 'm{worker="2",host="a"} 3', 'm{worker="2",host="b"} 5']],
])("series of two workers come to their %s", (together, lines) => {
  const one = metric({ together, samples: [["", 'host="a"', 1]] });
  const other = metric({
    together,
    samples: [
      ["", 'host="a"', 3],
      ["", 'host="b"', 5],
    ],
  });
  const all = togetherOf([
    { worker: 1, metrics: [one] },
    { worker: 2, metrics: [other] },
  ]);
  expect(prometheusText(all).trimEnd().split("\n").slice(2)).toEqual(lines);
});

test("of a process that has ended, only sums of what grows are kept", () => {
  const metrics = [
    metric({ name: "gauge" }),
    metric({ name: "counter", type: "counter" }),
    metric({ name: "times", type: "histogram" }),
    metric({ name: "cpu", type: "counter", together: "apart" }),
  ];
  expect(lasting(metrics).map(({ name }) => name)).toEqual(["counter", "times"]);
});
