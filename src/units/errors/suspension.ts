/** Specification, "Errors": what accounts are suspended after. */
export type SuspensionReason = "chargeback" | "sanctions" | "acceptable_use";

const CAUSES = {
  chargeback: "a chargeback",
  sanctions: "a sanctions-screening hit",
  acceptable_use: "an acceptable-use breach",
} as const satisfies Record<SuspensionReason, string>;

/** As a sentence goes on: "suspended after …". */
export const causeOf = (reason: SuspensionReason): string => CAUSES[reason];

export const SUSPENSION_REASONS = Object.keys(CAUSES) as SuspensionReason[];
