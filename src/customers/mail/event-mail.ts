import type { Clock, EpochMs } from "../../units/clock.ts";
import { HOUR_MS, isoTime } from "../../units/clock.ts";
import type { AccountId, BalanceId } from "../../units/id.ts";
import type { Log } from "../../units/log.ts";
import { NANO_PER_USD, type NanoUsd } from "../../units/usd.ts";
import type { Account } from "../accounts/account.ts";
import type { AccountStore } from "../accounts/account-store.ts";
import type { Email } from "../accounts/email.ts";
import { lowCreditMail, type Mail } from "../accounts/mail.ts";
import type { WebhookLine } from "../events/delivery.ts";
import { type OutgoingEvent, TEST_EVENT } from "../events/event.ts";
import { eventSentence } from "../events/slack.ts";
import type { ConfiguredWebhook } from "../events/webhook.ts";
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

/** Events to the mailbox of the balance's account: those of low credit, and all others that an owner's endpoint takes. */
export const mailLines = (deps: EventMailDeps): Record<"lowCredit" | "others", WebhookLine> => ({
  lowCredit: { send: (event) => sendLowCreditMail(event, deps), close() {} },
  others: { send: (event) => sendEventMail(event, deps), close() {} },
});

interface EventMailDeps {
  readonly accounts: Pick<AccountStore, "balanceRecord">;
  readonly hours: MailHours;
  readonly clock: Pick<Clock, "now">;
  readonly log: Log;
  readonly deliver: (mail: Mail) => Promise<MailOutcome>;
  readonly links: () => { readonly dashboardUrl: string; readonly contact: string | null };
}

/** Counts mails of events, over all processes. */
export interface MailHours {
  /** The number of the account's next mail in that hour; null where it has had `max`. */
  take(account: AccountId, hour: EpochMs, max: number): Promise<number | null>;
}

/** Whose mailbox gets mails about the balance: nobody's where it is suspended, or belongs to no account. */
export async function mailboxOf(
  balance: BalanceId,
  accounts: EventMailDeps["accounts"],
): Promise<{ readonly account: Account; readonly email: Email | null } | null> {
  const record = await accounts.balanceRecord(balance);
  const account = record?.owner?.account ?? null;
  if (account === null || record!.suspended !== null || account.suspended !== null) return null;
  return { account, email: account.email };
}

type SentMail = ReturnType<WebhookLine["send"]>;

/** Nobody is sent one for a balance that is suspended, or belongs to no account. */
async function sendLowCreditMail({ balanceId, data }: OutgoingEvent, deps: EventMailDeps): SentMail {
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
  const amounts = { left: nano(left_usd), below: nano(below_usd) };
  return delivered(lowCreditMail({ to: email, balance: balanceId, ...amounts, ...deps.links() }), deps);
}

/** Beyond the hour's bound, an event is taken without a mail: `GET /v1/events` has it. */
async function sendEventMail(event: OutgoingEvent, deps: EventMailDeps): SentMail {
  // Each account gets that mail anyway.
  if (event.kind === "credit.low") return null;
  const mailbox = await mailboxOf(event.balanceId as BalanceId, deps.accounts);
  if (mailbox === null || mailbox.email === null)
    return failed(event, "the balance has no account with an address");
  const now = deps.clock.now();
  const hour = (now - (now % HOUR_MS)) as EpochMs;
  const number = await deps.hours.take(mailbox.account.id, hour, MAX_EVENT_MAILS);
  if (number === null) return failed(event, `${MAX_EVENT_MAILS} mails were sent within this hour`);
  return delivered(eventMail(mailbox.email, event, number === MAX_EVENT_MAILS, deps.links()), deps);
}

async function delivered(mail: Mail, { deliver }: EventMailDeps): SentMail {
  const outcome = await deliver(mail);
  return outcome === "failed" ? { problem: "the mail server did not take the mail", isFinal: false } : null;
}

const failed = ({ kind }: OutgoingEvent, problem: string) =>
  kind === TEST_EVENT ? { problem, isFinal: false } : null;

const eventMail = (
  to: Email,
  event: OutgoingEvent,
  isLast: boolean,
  { dashboardUrl }: { readonly dashboardUrl: string },
): Mail => ({
  to,
  subject: `Your balance: ${event.kind}`,
  text: `${eventSentence(event)}.

Time: ${isoTime(event.at)}

All events of the last 30 days, and what you are sent:

${dashboardUrl}#/webhooks
${isLast ? `\nThis is the last mail within this hour: what else happens is on that page.\n` : ""}`,
});

/** To one account within an hour, for all of its balances together. */
export const MAX_EVENT_MAILS = 10;
