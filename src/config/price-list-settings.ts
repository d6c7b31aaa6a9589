import { Type } from "@sinclair/typebox";
import type { PriceList, PriceRule } from "../catalog/price-list.ts";
import { text } from "./kinds.ts";
import { price } from "./price-settings.ts";
import { describe, type Path, type ReportProblem } from "./problem.ts";
import { joined, listOf, mapOf, required, setting } from "./setting.ts";

const MILLION = 1_000_000;
const MAX_FACTOR = 1_000;
const A_FACTOR = `a decimal above 0, at most ${MAX_FACTOR}, with at most six decimals`;

/** In millionths. */
const factor = () => ({
  schema: Type.Number({ expected: A_FACTOR }),
  read(written: number, path: Path, report: ReportProblem): number | undefined {
    const millionths = Math.round(written * MILLION);
    const isExact = Math.abs(written * MILLION - millionths) <= 1e-6;
    if (millionths > 0 && written <= MAX_FACTOR && isExact) return millionths;
    report(path, String(written), A_FACTOR);
    return undefined;
  },
  show: (millionths: number): number => millionths / MILLION,
});

/** Stands for a rule with a mistake, which was reported. */
const UNCHANGED: PriceRule["change"] = { factorMillionths: MILLION };

/** One rule of a list; read-catalog checks that it names models. */
const PRICE_RULE = joined(
  mapOf(
    {
      model: required(
        text("the id of a model, or a pattern such as openai/*"),
        "the id of a model; `*` stands for any characters",
      ),
      factor: setting(factor(), null, {
        doc: "multiplies every member of the model's prices, each rounded up to the next nano-dollar per million tokens: above 0, at most six decimals",
        otherwise: "none",
      }),
      price: setting(price(), null, {
        doc: "instead of a factor: the [price](#prices) of the model at each of its hosts",
        otherwise: "none",
      }),
    },
    "a rule: { model, factor } or { model, price }",
  ),
  ({ model, factor: factorMillionths, price: own }, written, path, report): PriceRule => {
    if ((written.factor === undefined) === (written.price === undefined))
      report(
        path,
        written.factor === undefined ? "neither `factor` nor `price`" : "`factor` and `price`",
        "one of the two",
      );
    if (own !== null) return { model, change: { price: own } };
    return { model, change: factorMillionths === null ? UNCHANGED : { factorMillionths } };
  },
  ({ model, change }) => ({
    model,
    factor: "price" in change ? null : change.factorMillionths,
    price: "price" in change ? change.price : null,
  }),
);

const MAX_RULES = 200;
const MAX_LISTS = 100;
const RULES = listOf(
  PRICE_RULE,
  `a list of one to ${MAX_RULES} rules: { model, factor } or { model, price }`,
);
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

/** By name. */
export const priceLists = () => ({
  schema: Type.Record(Type.String(), { ...RULES.schema, maxItems: MAX_RULES } as typeof RULES.schema, {
    expected: "a map from names to lists of rules",
  }),
  read(
    written: Readonly<Record<string, Parameters<typeof RULES.read>[0]>>,
    path: Path,
    report: ReportProblem,
  ): ReadonlyMap<string, PriceList> {
    const names = Object.keys(written);
    if (names.length > MAX_LISTS) report(path, `${names.length} lists`, `at most ${MAX_LISTS} lists`);
    return new Map(
      names.map((name) => {
        if (!NAME.test(name))
          report(
            [...path, name],
            describe(name),
            "a name of 1 to 64 letters, digits, dots, dashes or underscores",
          );
        return [name, { name, rules: RULES.read(written[name]!, [...path, name], report) }];
      }),
    );
  },
  show: (lists: ReadonlyMap<string, PriceList>) =>
    Object.fromEntries([...lists].map(([name, { rules }]) => [name, withoutNulls(RULES.show(rules))])),
});

const withoutNulls = (rows: readonly unknown[]): unknown[] =>
  rows.map((row) => Object.fromEntries(Object.entries(row as object).filter(([, value]) => value !== null)));
