import { type Static, Type } from "@sinclair/typebox";
import {
  type ByRetention,
  type Price,
  type PriceStep,
  RATE_LINES,
  type Rates,
  RETENTIONS,
  writeRate,
} from "../catalog/price.ts";
import { NANO_PER_USD, type NanoPerMillion, nanoFromUsd, pricePerMillion } from "../units/usd.ts";
import { describe, type Path, type ReportProblem } from "./problem.ts";

const usdPerMillion = () =>
  Type.Number({ minimum: 0, expected: "USD per million tokens, from 0, with at most nine decimals" });

const optional = () => Type.Optional(usdPerMillion());

const LINES = {
  input: usdPerMillion(),
  output: usdPerMillion(),
  cache_read: optional(),
  cache_write: Type.Optional(
    Type.Union(
      [
        usdPerMillion(),
        Type.Object(
          { "5m": optional(), "30m": optional(), "1h": optional(), "12h": optional() },
          { additionalProperties: false, minProperties: 1 },
        ),
      ],
      { expected: `USD per million tokens, or such a price for each retention: ${RETENTIONS.join(", ")}` },
    ),
  ),
  cache_write_1h: optional(),
  audio_input: optional(),
  audio_output: optional(),
};

const StepSchema = Type.Object(
  { prompt: Type.Integer({ minimum: 1, expected: "a number of tokens, from 1" }), ...LINES },
  { additionalProperties: false, expected: `a step: { prompt, ${Object.keys(LINES).join(", ")} }` },
);

const MAX_STEPS = 8;

const PriceSchema = Type.Object(
  {
    ...LINES,
    above: Type.Optional(
      Type.Array(StepSchema, {
        minItems: 1,
        maxItems: MAX_STEPS,
        expected: `a list of one to ${MAX_STEPS} steps: { prompt, input, output, … }`,
      }),
    ),
  },
  { additionalProperties: false, expected: `a price: { ${Object.keys(LINES).join(", ")}, above }` },
);

type PriceRow = Static<typeof PriceSchema>;
type LinesRow = Omit<PriceRow, "above">;

/** A price as a file has it. */
export const price = () => ({ schema: PriceSchema, read: readPrice, show: priceRow });

export function readPrice({ above, ...row }: PriceRow, path: Path, report: ReportProblem): Price {
  const base = readLines(row, path, report);
  if (above === undefined) return base;
  const steps: PriceStep[] = [];
  for (const [at, { prompt, ...lines }] of above.entries()) {
    const own = [...path, "above", at];
    const [missing] = differences(row, lines);
    if (missing !== undefined)
      report(own, `a step ${missing in lines ? "with" : "without"} \`${missing}\``, "the lines of its price");
    const before = steps.at(-1) ?? base;
    if (prompt <= (before.prompt ?? 0))
      report([...own, "prompt"], describe(prompt), `more than ${before.prompt}, as steps grow`);
    const step = { ...readLines(lines, own, report), prompt };
    // What is held for a prompt is the price of the longest that it can be.
    const cheaper = cheaperLine(step, before);
    if (cheaper !== null) report([...own, cheaper], "a step that is cheaper", "at least the price before it");
    steps.push(step);
  }
  return { ...base, above: steps };
}

/** Names of lines, and of retentions, that only one of the two has. */
function differences(one: LinesRow, other: LinesRow): string[] {
  const namesOf = (row: LinesRow) =>
    Object.entries(row).flatMap(([name, value]) =>
      typeof value === "object" ? Object.keys(value).map((key) => `${name}.${key}`) : [name],
    );
  const [a, b] = [new Set(namesOf(one)), new Set(namesOf(other))];
  return [...a.symmetricDifference(b)];
}

function cheaperLine(step: Rates, before: Rates): string | null {
  const names = ["input", "output", "cache_read", "cache_write", "audio_input", "audio_output"] as const;
  const name = names.find((one) => (RATE_LINES[one](step) ?? 0) < (RATE_LINES[one](before) ?? 0));
  if (name !== undefined) return name;
  const isCheaper = RETENTIONS.some((one) => (writeRate(step, one) ?? 0) < (writeRate(before, one) ?? 0));
  return isCheaper ? "cache_write" : null;
}

function readLines(row: LinesRow, path: Path, report: ReportProblem): Rates {
  const read = (usd: number, at: Path): NanoPerMillion => {
    const perMillion = nanoFromUsd(usd) === null ? null : pricePerMillion(usd);
    if (perMillion === null)
      report(at, String(usd), "USD per million tokens, at most 1000000, with at most nine decimals");
    return perMillion ?? (0 as NanoPerMillion);
  };
  const line = (key: Exclude<keyof LinesRow, "cache_write">, otherwise: NanoPerMillion): NanoPerMillion =>
    row[key] === undefined ? otherwise : read(row[key], [...path, key]);
  const zero = 0 as NanoPerMillion;
  const input = line("input", zero);
  const { cache_write: written } = row;
  const writes: ByRetention<NanoPerMillion> | null =
    typeof written !== "object"
      ? null
      : Object.fromEntries(
          RETENTIONS.flatMap((one) =>
            written[one] === undefined ? [] : [[one, read(written[one], [...path, "cache_write", one])]],
          ),
        );
  if (writes !== null && row.cache_write_1h !== undefined)
    report([...path, "cache_write_1h"], describe(row.cache_write_1h), '`cache_write: { "1h": … }` instead');
  // A host that says nothing about its cache bills such tokens as any others.
  const cacheWrite =
    typeof written === "number" ? read(written, [...path, "cache_write"]) : writes ? shortest(writes) : input;
  // What Anthropic documents for its one-hour cache ("Prompt caching", pricing).
  const anHour = Math.max(2 * input, cacheWrite) as NanoPerMillion;
  return {
    input,
    output: line("output", zero),
    cacheRead: line("cache_read", input),
    cacheWrite,
    cacheWrites: writes ?? { "1h": line("cache_write_1h", anHour) },
    ...(row.audio_input === undefined ? {} : { audioInput: line("audio_input", zero) }),
    ...(row.audio_output === undefined ? {} : { audioOutput: line("audio_output", zero) }),
  };
}

const shortest = (writes: ByRetention<NanoPerMillion>): NanoPerMillion =>
  writes[RETENTIONS.find((one) => writes[one] !== undefined)!]!;

/** The price as `readPrice` reads it. */
export const priceRow = ({ above, ...base }: Price) => ({
  ...linesRow(base),
  ...(above === undefined
    ? {}
    : { above: above.map((step) => ({ prompt: step.prompt, ...linesRow(step) })) }),
});

function linesRow(rates: Rates) {
  const { cacheWrite, cacheWrites = { "1h": cacheWrite }, audioInput, audioOutput } = rates;
  const { "1h": anHour } = cacheWrites;
  const isPlain = anHour !== undefined && Object.keys(cacheWrites).length === 1;
  const retentions = Object.entries(cacheWrites).map(([name, rate]) => [name, usdOf(rate)]);
  return {
    input: usdOf(rates.input),
    ...(audioInput === undefined ? {} : { audio_input: usdOf(audioInput) }),
    output: usdOf(rates.output),
    ...(audioOutput === undefined ? {} : { audio_output: usdOf(audioOutput) }),
    cache_read: usdOf(rates.cacheRead),
    ...(isPlain
      ? { cache_write: usdOf(cacheWrite), cache_write_1h: usdOf(anHour) }
      : { cache_write: Object.fromEntries(retentions) }),
  };
}

const usdOf = (perMillion: NanoPerMillion): number => perMillion / NANO_PER_USD;
