import type { HeldAt } from "../api/schema.ts";

/**
 * Money as people read it: cents where there are dollars, more digits where an amount would otherwise read as
 * nothing.
 */
export function usd(amount: number): string {
  const size = Math.abs(amount);
  if (size === 0 || size >= 1) return money(amount, 2);
  if (size >= 0.01) return money(amount, 4);
  return money(amount, 9).replace(/0+$/, "");
}

/** Where the last digit does not matter: next to a cap. */
export const roughUsd = (amount: number): string => (amount >= 0.01 ? money(amount, 2) : usd(amount));

/**
 * For the amounts of a column, which stand under each other: all with as many decimals, the fewest of 2, 4 and 6 that
 * tell each of them whole or to two digits that count.
 */
export function usdColumn(amounts: readonly number[]): (amount: number) => string {
  const digits = ([2, 4] as const).find((some) => amounts.every((amount) => isPrecise(amount, some))) ?? 6;
  const least = 10 ** -digits;
  return (amount) =>
    amount !== 0 && Math.abs(amount) < least / 2 ? `under ${money(least, digits)}` : money(amount, digits);
}

const isPrecise = (amount: number, digits: number): boolean =>
  Math.abs(amount) >= 10 ** (1 - digits) || Number(amount.toFixed(digits)) === amount;

type Digits = 2 | 4 | 6 | 9;

const money = (amount: number, digits: Digits): string =>
  `${amount < 0 ? "−" : ""}$${MONEY[digits].format(Math.abs(amount))}`;

const decimals = (digits: Digits) =>
  new Intl.NumberFormat("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });

/** Made once: that takes longer than a hundred numbers do. */
const MONEY = { 2: decimals(2), 4: decimals(4), 6: decimals(6), 9: decimals(9) };

/** Behind an amount that is held, where a process does not answer that may hold less than was granted to it. */
export const atMost = ({ held_at }: { readonly held_at: HeldAt }): string =>
  held_at === "all_processes_at_most" ? " at most" : "";

/** The same behind what is available without it. */
export const atLeast = ({ held_at }: { readonly held_at: HeldAt }): string =>
  held_at === "all_processes_at_most" ? " at least" : "";

export const count = (number: number): string => number.toLocaleString("en");

export const milliseconds = (ms: number): string =>
  ms < 0.5
    ? "under 1 ms"
    : ms >= 10_000
      ? `${(ms / 1000).toFixed(0)} s`
      : ms >= 1_000
        ? `${(ms / 1000).toFixed(1)} s`
        : `${Math.round(ms)} ms`;

/** The year only where it is another one. */
export const moment = (iso: string, precision: keyof typeof TIMES = "minute"): string => {
  const at = new Date(iso);
  return TIMES[precision][at.getFullYear() === new Date().getFullYear() ? 0 : 1]!.format(at);
};

const TIMES = { minute: timesWith({}), second: timesWith({ second: "2-digit" }) };

function timesWith(more: Intl.DateTimeFormatOptions): readonly Intl.DateTimeFormat[] {
  const shown = {
    month: "short",
    day: "numeric",
    hour: "2-digit",
    minute: "2-digit",
    hour12: false,
  } as const;
  return [{}, { year: "numeric" } as const].map(
    (year) => new Intl.DateTimeFormat("en", { ...year, ...shown, ...more }),
  );
}

/** To the second, for rows that have to be distinguished; the zone is in the heading. */
export const second = (iso: string): string => moment(iso, "second");

/** The browser's, in which all times are shown: "UTC", "GMT+1". */
export const timeZone = (): string =>
  new Intl.DateTimeFormat("en", { timeZoneName: "short" })
    .formatToParts()
    .find(({ type }) => type === "timeZoneName")!.value;

export const words = (identifier: string): string => identifier.replaceAll("_", " ");

/** As the header `x-gateway-tags` has them. */
export const tagsText = (tags: Readonly<Record<string, string>>): string =>
  Object.entries(tags)
    .map(([name, value]) => `${name}=${value}`)
    .join("; ");

/** An idempotency key. Not `randomUUID`, which browsers offer on https only. */
export const randomName = (prefix: string): string =>
  `${prefix}-${[...crypto.getRandomValues(new Uint32Array(4))].map((word) => word.toString(36)).join("")}`;
