import { type Refusal, refuse } from "./refusal.ts";

export type SuspensionReason = "chargeback" | "sanctions" | "acceptable_use";

const SUSPENSIONS = {
  chargeback: "a chargeback",
  sanctions: "a sanctions-screening hit",
  acceptable_use: "an acceptable-use breach",
} as const satisfies Record<SuspensionReason, string>;

export const SUSPENSION_REASONS = Object.keys(SUSPENSIONS) as SuspensionReason[];

/**
 * Specification, "Errors": the reply names which of the three it was. `contact` is where the operator is
 * reached: an address of a page, or of a mailbox with `mailto:`; null where the configuration does not say.
 */
export const suspension = (reason: SuspensionReason, contact: string | null): Refusal =>
  refuse(
    "account_suspended",
    `This account is suspended after ${SUSPENSIONS[reason]} (${reason}). Contact the operator of this gateway${reached(contact)}.`,
  );

/** In brackets: a full stop right behind an address would be taken for a part of it. */
const reached = (contact: string | null): string =>
  contact === null ? "" : ` (${contact.replace(/^mailto:/, "")})`;
