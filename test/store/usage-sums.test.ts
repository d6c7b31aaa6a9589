import { describe, expect, test } from "bun:test";
import { sumUsage, type UsageRow, type UsageSplit } from "../../src/store/usage/usage-sums.ts";

const HOUR = 3_600_000;

interface RowParts {
  readonly at?: number;
  readonly key?: string;
  readonly state?: string;
  readonly charged?: number;
  readonly model?: string | null;
  readonly host?: string | null;
  readonly firstTokenMs?: number | null;
  readonly attempts?: readonly [string, string][];
}

const row = (parts: RowParts = {}): UsageRow => ({
  at: parts.at ?? 0,
  keyId: parts.key ?? "key_a",
  state: parts.state ?? "settled",
  charged: parts.charged ?? 10,
  body: JSON.stringify({
    model: parts.model === undefined ? "a/m" : parts.model,
    model_requested: "gateway/auto:fast",
    host: parts.host === undefined ? "h" : parts.host,
    attempts: (parts.attempts ?? []).map(([host, outcome]) => ({ host, outcome })),
    tokens: { input: 3, cache_read: 2, cache_write: 1, output: 4 },
    first_token_ms: parts.firstTokenMs === undefined ? 100 : parts.firstTokenMs,
  }),
});

describe("sums over receipts", () => {
  test("stretches come in order of time and are kept apart by model", () => {
    const rows = [row({ at: HOUR + 5 }), row({ at: 7, model: "b/m" }), row({ at: HOUR + 9, charged: 5 })];
    expect(sumUsage(rows, { stretchMs: HOUR }, 10).stretches).toMatchObject([
      { start: 0, name: "b/m", requests: 1, failed: 0, chargedNano: 10, inputTokens: 6, outputTokens: 4 },
      {
        start: HOUR,
        name: "a/m",
        requests: 2,
        failed: 0,
        chargedNano: 15,
        inputTokens: 12,
        outputTokens: 8,
      },
    ]);
  });

  const splits: [UsageSplit, [number, string, number][]][] = [
    [
      "key",
      [
        [0, "key_a", 1],
        [0, "key_b", 1],
        [HOUR, "key_b", 1],
      ],
    ],
    [
      "host",
      [
        [0, "h", 1],
        [0, "", 1],
        [HOUR, "h", 1],
      ],
    ],
    [
      "all",
      [
        [0, "", 2],
        [HOUR, "", 1],
      ],
    ],
  ];
  test.each(splits)("stretches can be split by %s", (by, expected) => {
    const rows = [row(), row({ key: "key_b", host: null }), row({ key: "key_b", at: HOUR + 1 })];
    const { stretches } = sumUsage(rows, { stretchMs: HOUR, by }, 10);
    expect(stretches.map(({ start, name, requests }) => [start, name, requests])).toEqual(expected);
  });

  test("keys have their sums, and when they were last used", () => {
    const rows = [row({ at: 9, key: "key_b" }), row({ at: 7 }), row({ at: 5, state: "failed" })];
    expect(sumUsage(rows, { stretchMs: HOUR }, 10).keys).toMatchObject([
      { keyId: "key_b", lastAt: 9, requests: 1, failed: 0 },
      { keyId: "key_a", lastAt: 7, requests: 2, failed: 1 },
    ]);
  });

  test("what no host served counts under the model that was asked for, and under no route", () => {
    const { models, routes } = sumUsage(
      [row({ model: null, host: null, state: "failed" })],
      { stretchMs: HOUR },
      10,
    );
    expect(models).toMatchObject([{ model: "gateway/auto:fast", requests: 1, failed: 1 }]);
    expect(routes).toEqual([]);
  });

  test.each([
    ["settled", 0],
    ["cancelled", 0],
    ["failed", 1],
    ["written_off", 1],
    ["recovered", 1],
  ])("%s counts as %p failures", (state, failed) => {
    expect(sumUsage([row({ state })], { stretchMs: HOUR }, 10).models[0]!.failed).toBe(failed);
  });

  test("first tokens are shown as the median and as what 19 of 20 stayed within", () => {
    const rows = Array.from({ length: 100 }, (_, index) => row({ firstTokenMs: 100 - index }));
    rows.push(row({ firstTokenMs: null }));
    const { routes } = sumUsage(rows, { stretchMs: HOUR }, 1_000);
    expect(routes[0]).toMatchObject({ firstTokenMsP50: 50, firstTokenMsP95: 95, requests: 101 });
    expect(sumUsage([row({ firstTokenMs: null })], { stretchMs: HOUR }, 10).routes[0]).toMatchObject({
      firstTokenMsP50: null,
      firstTokenMsP95: null,
    });
  });

  test("a host's failures count where another host made them good; a client's, and a faster host, do not", () => {
    const attempts: [string, string][] = [
      ["h1", "unreachable"],
      ["h2", "opened"],
    ];
    const { hosts } = sumUsage(
      [
        row({ attempts }),
        row({ attempts: [["h2", "abandoned"]] }),
        row({ attempts: [["h2", "rejected"]] }),
        row({ attempts: [["h2", "outrun"]] }),
      ],
      { stretchMs: HOUR },
      10,
    );
    expect(hosts).toEqual([
      { host: "h1", attempts: 1, failed: 1 },
      { host: "h2", attempts: 1, failed: 0 },
    ]);
  });

  test("more receipts than are looked at are said to be left out", () => {
    const rows = [row(), row(), row()];
    expect(sumUsage(rows, { stretchMs: HOUR }, 3)).toMatchObject({
      truncated: false,
      models: [{ requests: 3 }],
    });
    expect(sumUsage(rows, { stretchMs: HOUR }, 2)).toMatchObject({
      truncated: true,
      models: [{ requests: 2 }],
    });
  });
});
