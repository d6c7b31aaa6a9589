import { operatorAt } from "../contact.ts";
import { type Refusal, refuse } from "./refusal.ts";
import { causeOf, type SuspensionReason } from "./suspension.ts";

/** Specification, "Errors": the reply names which of the three it was. `contact` as in the configuration. */
export const suspension = (reason: SuspensionReason, contact: string | null): Refusal =>
  refuse(
    "account_suspended",
    `This account is suspended after ${causeOf(reason)}, and its requests are refused. Contact ${operatorAt(contact)}.`,
  );
