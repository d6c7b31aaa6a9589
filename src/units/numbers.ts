/** Numbers as pages show them. A format is made once: making one takes 10 µs, and pages hold thousands of numbers. */

/** A price per million tokens, with every digit that the operator gave it. */
export const perMillion = (price: number): string => `$${PRICE.format(price)}`;

/** 128000 → 128K. */
export const rough = (number: number): string => COMPACT.format(number);

const PRICE = new Intl.NumberFormat("en", { minimumFractionDigits: 2, maximumFractionDigits: 9 });
const COMPACT = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
