import { type Static, type TSchema, Type } from "@sinclair/typebox";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../units/clock.ts";
import { Networks } from "../units/networks.ts";
import { type NanoUsd, nanoFromUsd, usdFromNano } from "../units/usd.ts";
import {
  hostAndPort,
  MASK,
  readAddress,
  readContact,
  readListenAddress,
  withoutPassword,
} from "./address.ts";
import { describe, type Path, type ReportProblem } from "./problem.ts";
import type { SettingKind } from "./setting.ts";

/**
 * The kinds of settings. `expected` is what the message about a mistake says instead of TypeBox's own words. Each kind
 * decides how its values are shown to the operator, so a secret is one because of its kind, wherever it stands.
 */
export const plain = <S extends TSchema>(schema: S): SettingKind<S, Static<S>> => ({
  schema,
  read: (written) => written,
  show: (value) => value,
});

const MAX_COUNT = 1_000_000_000;
/** Timers hold 31 bits of milliseconds. */
const MAX_MS = 2_147_483_647;

const string = (expected: string, own: { readonly pattern?: string; readonly secret?: true } = {}) =>
  Type.String({ minLength: 1, maxLength: 4096, expected, ...own });

export const text = (expected: string, pattern?: string) =>
  plain(string(expected, pattern === undefined ? {} : { pattern }));

/** Neither problems nor the view show it. */
export const secret = (
  expected = "a secret, usually from an environment variable",
  pattern?: string,
): SettingKind<ReturnType<typeof string>, string> => ({
  ...plain(string(expected, { secret: true, ...(pattern === undefined ? {} : { pattern }) })),
  show: () => MASK,
});

/** One, or a list while one replaces another. */
export const secrets = (expected = "a secret", pattern?: string) => {
  const one = secret(pattern === undefined ? undefined : expected, pattern);
  const several = Type.Array(one.schema, { minItems: 1, expected: "a list of at least one secret" });
  return {
    schema: Type.Union([one.schema, several], { expected: `${expected}, or a list of them`, secret: true }),
    read: (written: string | readonly string[]): readonly string[] => [written].flat() as readonly string[],
    show: (shown: readonly string[]) => shown.map((each) => one.show(each)),
  };
};

export const count = (least: number, most = MAX_COUNT) => {
  const expected = `a whole number from ${least}${most === MAX_COUNT ? "" : ` to ${most}`}`;
  return plain(Type.Integer({ minimum: least, maximum: most, expected }));
};

export const ms = (least = 0) => {
  const expected = `a whole number of milliseconds from ${least} to ${MAX_MS}`;
  return plain(Type.Integer({ minimum: least, maximum: MAX_MS, expected }));
};

/** Shown as it is written: `30s`, `1m`, `1h`. */
export const duration = () => ({
  schema: string("a time from 1s to 24h, such as 30s, 1m or 1h", { pattern: "^[1-9][0-9]{0,4}[smh]$" }),
  read(written: string, path: Path, report: ReportProblem): number | undefined {
    const ms = Number(written.slice(0, -1)) * UNITS_MS[written.at(-1) as keyof typeof UNITS_MS];
    if (ms <= DAY_MS) return ms;
    report(path, describe(written), "a time from 1s to 24h");
    return undefined;
  },
  show(ms: number): string {
    const unit = ms % UNITS_MS.h === 0 ? "h" : ms % UNITS_MS.m === 0 ? "m" : "s";
    return `${ms / UNITS_MS[unit]}${unit}`;
  },
});

const UNITS_MS = { s: 1_000, m: MINUTE_MS, h: HOUR_MS };

export const days = (least: number) =>
  plain(Type.Integer({ minimum: least, maximum: 36_500, expected: `a whole number of days from ${least}` }));

export const yesOrNo = () => plain(Type.Boolean({ expected: "true or false" }));

export const oneOf = <const T extends readonly string[]>(values: T) =>
  plain(
    Type.Union(
      values.map((value) => Type.Literal(value as T[number])),
      { expected: `one of: ${values.join(", ")}` },
    ),
  );

export const mapFrom = <S extends TSchema>(values: S, expected: string) =>
  Type.Record(Type.String(), values, { expected });

const amountOf = (
  expected: string,
  read: (usd: number, path: Path, report: ReportProblem) => NanoUsd | undefined,
) => ({
  schema: Type.Number({ minimum: 0, expected }),
  read,
  show: (value: NanoUsd): number => usdFromNano(value),
});

export const usd = () =>
  amountOf("an amount in USD with at most nine decimals", (written, path, report) => {
    const nano = nanoFromUsd(written);
    if (nano !== null) return nano;
    report(path, String(written), "an amount in USD, at most 8000000, with at most nine decimals");
    return undefined;
  });

const IN_CENTS = "an amount in USD with at most two decimals";
const NANO_PER_CENT = 10_000_000;

/** What is paid by card, or by people, has no smaller unit. */
export const cents = () =>
  amountOf(IN_CENTS, (written, path, report) => {
    const nano = nanoFromUsd(written);
    if (nano !== null && nano % NANO_PER_CENT === 0) return nano;
    report(path, describe(written), IN_CENTS);
    return undefined;
  });

export const webAddress = (
  expected = "an http:// or https:// address",
): SettingKind<ReturnType<typeof string>, string> => ({
  schema: string(expected),
  read: readAddress,
  show: withoutPassword,
});

/** An address that customers see. */
export const link = (): ReturnType<typeof webAddress> => ({ ...webAddress(), show: (address) => address });

/** Providers of nodes put the key into the path. */
export const nodeAddress = (): ReturnType<typeof webAddress> => ({
  ...webAddress(),
  show: (address) => `${new URL(address).origin}/${MASK}`,
});

export const contact = () => ({
  ...text("an http://, https:// or mailto: address"),
  read: readContact,
});

export const listenAddress = () => ({
  schema: string("an address and a port, such as 127.0.0.1:9090"),
  read: readListenAddress,
  show: hostAndPort,
});

const A_BLOCK = "an address, or a block of them such as 10.0.0.0/8";

export const networks = () => ({
  schema: Type.Array(string(A_BLOCK), { expected: "a list of addresses and blocks" }),
  read(rows: readonly string[], path: Path, report: ReportProblem): Networks {
    const blocks = new Networks();
    for (const [index, row] of rows.entries())
      if (!blocks.add(row)) report([...path, index], describe(row), A_BLOCK);
    return blocks;
  },
  show: ({ rows }: Networks) => rows,
});

/** By chain id. */
export const nodesOfChains = () => ({
  schema: mapFrom(webAddress().schema, "a map from chain ids to addresses of nodes"),
  read(rows: Readonly<Record<string, string>>, path: Path, report: ReportProblem) {
    const nodes = new Map<number, string>();
    for (const [chain, written] of Object.entries(rows)) {
      const address = readAddress(written, [...path, chain], report);
      if (!/^[1-9]\d{0,9}$/.test(chain))
        report([...path, chain], chain, "a chain id, such as 1 for Ethereum mainnet");
      else if (address !== undefined) nodes.set(Number(chain), address);
    }
    return nodes as ReadonlyMap<number, string>;
  },
  show: (nodes: ReadonlyMap<number, string>) =>
    Object.fromEntries([...nodes].map(([chain, url]) => [chain, nodeAddress().show(url)])),
});
