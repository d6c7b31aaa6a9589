import type { BalanceId } from "../../units/id.ts";
import type { Log } from "../../units/log.ts";
import { NANO_PER_USD, type NanoUsd } from "../../units/usd.ts";
import type { AccountStore } from "../accounts/account-store.ts";
import { lowCreditMail, type Mail } from "../accounts/mail.ts";
import type { WebhookLine } from "../events/delivery.ts";
import type { OutgoingEvent } from "../events/event.ts";
import type { ConfiguredWebhook } from "../events/webhook.ts";
import { mailboxOf } from "./event-mail.ts";
import type { MailOutcome } from "./mailer.ts";

/** Owners' mails, as an endpoint: each event `credit.low` becomes a mail to the owner of its balance. */
export const OWNERS_MAIL = "mail";

/** Owners without a threshold of their own get none where `lowCredit` is null. */
export const ownersMail = (lowCredit: NanoUsd | null): ConfiguredWebhook => ({
  id: OWNERS_MAIL,
  url: "",
  format: "mail",
  kinds: ["credit.low"],
  secrets: [],
  lowCredit,
});

export function mailLine(deps: LowCreditMailDeps): WebhookLine {
  return {
    send: (event) => sendMail(event, deps),
    close() {},
  };
}

interface LowCreditMailDeps {
  readonly accounts: Pick<AccountStore, "balanceRecord">;
  readonly log: Log;
  readonly deliver: (mail: Mail) => Promise<MailOutcome>;
  readonly links: () => { readonly dashboardUrl: string; readonly contact: string | null };
}

/** Nobody is sent one for a balance that is suspended, or belongs to no account. */
async function sendMail(
  { balanceId, data }: OutgoingEvent,
  deps: LowCreditMailDeps,
): ReturnType<WebhookLine["send"]> {
  const mailbox = await mailboxOf(balanceId as BalanceId, deps.accounts);
  if (mailbox === null) return null;
  const { account, email } = mailbox;
  const { left_usd, below_usd } = JSON.parse(data) as { left_usd: number; below_usd: number };
  deps.log("low credit", {
    balance: balanceId,
    account: account.id,
    left_usd,
    below_usd,
    has_email: email !== null,
  });
  if (email === null) return null;
  const nano = (usd: number) => Math.round(usd * NANO_PER_USD) as NanoUsd;
  const mail = lowCreditMail({
    to: email,
    balance: balanceId,
    left: nano(left_usd),
    below: nano(below_usd),
    ...deps.links(),
  });
  const outcome = await deps.deliver(mail);
  return outcome === "failed" ? { problem: "the mail server did not take the mail", isFinal: false } : null;
}
