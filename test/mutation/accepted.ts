import type { Mutant } from "./mutants.ts";

/** A mutant that no test notices and none has to. */
export interface Accepted {
  readonly file: string;
  /** As the run prints it: the line, and what becomes of it. */
  readonly before: string;
  readonly after: string;
  readonly reason: string;
}

export const isAccepted = (mutant: Mutant): boolean => ACCEPTED.some((one) => isOf(one, mutant));

export const isOf = (one: Accepted, mutant: Mutant): boolean =>
  one.file === mutant.file && one.before === mutant.before && one.after === mutant.after;

export const ACCEPTED: readonly Accepted[] = [
  {
    file: "src/ledger/limits/rate-window.ts",
    before: "for (let slot = this.oldest; slot <= this.newest && excess > 0; slot++) {",
    after: "for (let slot = this.oldest; excess > 0; slot++) {",
    reason:
      "Once all slots are free, nothing is in excess; the bound is there for rounding errors of fractions.",
  },
  {
    file: "src/units/byte-budget.ts",
    before: "if (keptBytes >= held) return;",
    after: "if (keptBytes > held) return;",
    reason: "Equal sizes change nothing.",
  },
  {
    file: "src/ledger/shortfall.ts",
    before: "if (amount === 0) return null;",
    after: "if (false) return null;",
    reason:
      "Room never shows below zero, so nothing always fits; the line spares free requests the other checks.",
  },
  {
    file: "src/hosts/http1/reader.ts",
    before: "let at = rest.indexOf(LF, Math.max(0, rest.length - fresh));",
    after: "let at = rest.indexOf(LF, Math.min(0, rest.length - fresh));",
    reason: "What was read before had no lone line break; looking at it again costs time only.",
  },
  {
    file: "src/ledger/grants.ts",
    before:
      "if (room(counter, limit) >= amount || this.negotiation(counter, limit).waitingAmount > 0) return;",
    after: "if (room(counter, limit) > amount || this.negotiation(counter, limit).waitingAmount > 0) return;",
    reason: "What is asked for next looks again whether there is room, and states nothing.",
  },
  {
    file: "src/generation/hold.ts",
    before: "if (!ledger.extend(reservation, beyond)) return false;",
    after: "if (!ledger.extend(reservation, beyond)) return true;",
    reason: "A limit that covers several times as much covers this: it was asked in the same turn.",
  },
  {
    file: "src/routing/speed.ts",
    before: "this.sinceSort = 0;",
    after: ";",
    reason: "Sorted more often, the samples are the same, and newer.",
  },
  {
    file: "src/customers/keys/runs.ts",
    before: "for (let round = 0; round < MAX_READS; round++) {",
    after: "for (let round = 0; round <= MAX_READS; round++) {",
    reason: "A bound on reads that others' changes make old; one more is as good.",
  },
  {
    file: "src/routing/host-sort.ts",
    before: "const compare = (a: number, b: number): number => (a < b ? -1 : a > b ? 1 : 0);",
    after: "const compare = (a: number, b: number): number => (a < b ? -1 : !(a > b) ? 1 : 0);",
    reason: "JavaScriptCore's sort asks only whether a comparison is below zero.",
  },
];
