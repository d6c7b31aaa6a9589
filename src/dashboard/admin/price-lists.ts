import type { ConfigAnswer } from "../../api/admin.ts";

/** The names of the configuration's price lists. */
export const priceListsIn = (config: ConfigAnswer | null): readonly string[] =>
  Object.keys((config?.price_lists ?? {}) as object);
