/** A map of a source that nobody has checked. */
export type Fields = Readonly<Record<string, unknown>>;

/** Empty where it is no map. */
export const fieldsOf = (value: unknown): Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : {};

/** Null where it is no text, or an empty one. */
export const textOf = (value: unknown): string | null =>
  typeof value === "string" && value !== "" ? value : null;

/** Undefined also for names that every object has, such as `constructor`: the source wrote this one. */
export const rowOf = <Row>(table: Readonly<Record<string, Row>>, name: string): Row | undefined =>
  Object.hasOwn(table, name) ? table[name] : undefined;

/** Also from text, as sources write some of their numbers. */
export function numberOf(value: unknown): number | null {
  const number = typeof value === "string" && value.trim() !== "" ? Number(value) : value;
  return typeof number === "number" && Number.isFinite(number) ? number : null;
}

/** The JSON of a text column; null where it is none. */
export function jsonOf(value: unknown): unknown {
  try {
    return typeof value === "string" ? JSON.parse(value) : null;
  } catch {
    return null;
  }
}

/** USD per token as USD per million tokens, with at most nine decimals. */
export const perMillion = (perToken: number): number => Number((perToken * 1e6).toFixed(9));
