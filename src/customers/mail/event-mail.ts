import type { Clock, EpochMs } from "../../units/clock.ts";
import { HOUR_MS, isoTime } from "../../units/clock.ts";
import type { AccountId, BalanceId } from "../../units/id.ts";
import type { Account } from "../accounts/account.ts";
import type { AccountStore } from "../accounts/account-store.ts";
import type { Email } from "../accounts/email.ts";
import type { Mail } from "../accounts/mail.ts";
import type { WebhookLine } from "../events/delivery.ts";
import { type OutgoingEvent, TEST_EVENT } from "../events/event.ts";
import { eventSentence } from "../events/slack.ts";
import type { MailOutcome } from "./mailer.ts";

/** An owner's endpoint that is the mailbox of the balance's account: each event that it takes is a mail. */
export function eventMailLine(deps: EventMailDeps): WebhookLine {
  return {
    send: (event) => sendEventMail(event, deps),
    close() {},
  };
}

export interface EventMailDeps {
  readonly accounts: Pick<AccountStore, "balanceRecord">;
  readonly hours: MailHours;
  readonly clock: Pick<Clock, "now">;
  readonly deliver: (mail: Mail) => Promise<MailOutcome>;
  readonly links: () => { readonly dashboardUrl: string };
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

/** Beyond the hour's bound, an event is taken without a mail: `GET /v1/events` has it. */
async function sendEventMail(event: OutgoingEvent, deps: EventMailDeps): ReturnType<WebhookLine["send"]> {
  // Each account gets that mail anyway: see low-credit.
  if (event.kind === "credit.low") return null;
  const mailbox = await mailboxOf(event.balanceId as BalanceId, deps.accounts);
  if (mailbox === null || mailbox.email === null)
    return failed(event, "the balance has no account with an address");
  const now = deps.clock.now();
  const hour = (now - (now % HOUR_MS)) as EpochMs;
  const number = await deps.hours.take(mailbox.account.id, hour, MAX_EVENT_MAILS);
  if (number === null) return failed(event, `${MAX_EVENT_MAILS} mails were sent within this hour`);
  const outcome = await deps.deliver(
    eventMail(mailbox.email, event, number === MAX_EVENT_MAILS, deps.links()),
  );
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
