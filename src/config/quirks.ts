import type { TBoolean, TOptional } from "@sinclair/typebox";
import { QUIRK_MEANINGS, type QuirkName, type Quirks } from "../catalog/quirks.ts";
import { yesOrNo } from "./kinds.ts";
import { mapOf, type Setting, setting } from "./setting.ts";

type QuirkRows = Readonly<Record<QuirkName, Setting<TOptional<TBoolean>, boolean | undefined>>>;

export type QuirkRow = Partial<Record<QuirkName, boolean>>;

const ROWS = Object.fromEntries(
  Object.entries(QUIRK_MEANINGS).map(([name, doc]) => [
    name,
    setting(yesOrNo(), undefined, { doc, otherwise: "`false`" }),
  ]),
) as QuirkRows;

export const QUIRKS = mapOf(ROWS, "a map of quirks");

/** The same as a file has them. */
export const quirkRow = (quirks: Quirks): QuirkRow => QUIRKS.show(quirks) as QuirkRow;

/** The model's quirks that differ from its host's; null where there are none. */
export function ownQuirks(model: Quirks, host: Quirks): QuirkRow | null {
  const shared = quirkRow(host);
  const own = Object.entries(quirkRow(model)).filter(
    ([name, value]) => value !== (shared[name as QuirkName] ?? false),
  );
  return own.length === 0 ? null : Object.fromEntries(own);
}
