import { operatorAt } from "../units/contact.ts";
import { type Refusal, refuse } from "./refusal.ts";

export type SuspensionReason = "chargeback" | "sanctions" | "acceptable_use";

const SUSPENSIONS = {
  chargeback: "a chargeback",
  sanctions: "a sanctions-screening hit",
  acceptable_use: "an acceptable-use breach",
} as const satisfies Record<SuspensionReason, string>;

/** "a chargeback": what it was that a suspension came after. */
export const causeOf = (reason: SuspensionReason): string => SUSPENSIONS[reason];

export const SUSPENSION_REASONS = Object.keys(SUSPENSIONS) as SuspensionReason[];

/** Specification, "Errors": the reply names which of the three it was. `contact` as in the configuration. */
export const suspension = (reason: SuspensionReason, contact: string | null): Refusal =>
  refuse(
    "account_suspended",
    `This account is suspended after ${SUSPENSIONS[reason]}, and its requests are refused. Contact ${operatorAt(contact)}.`,
  );
