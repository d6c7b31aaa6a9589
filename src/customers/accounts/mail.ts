import { operatorAt } from "../../units/contact.ts";
import { formatUsd, type NanoUsd } from "../../units/usd.ts";
import type { Email } from "./email.ts";
import { UNDO_DAYS } from "./ownership.ts";

/** A mail in plain text. */
export interface Mail {
  readonly to: Email;
  readonly subject: string;
  readonly text: string;
}

interface SignInLink {
  readonly to: Email;
  readonly dashboardUrl: string;
  readonly token: string;
  readonly minutes: number;
}

export const signInMail = (link: SignInLink): Mail => ({
  to: link.to,
  subject: "Your sign-in link",
  text: `Open this link to sign in:

${address(link)}

The link works once and expires in ${link.minutes} minutes. If you did not ask for it, ignore this mail: nothing happens unless
the link is opened.
`,
});

/** Says which key claimed what, so that readers can tell their own claim from a stranger's. */
export const claimMail = (link: SignInLink & { balance: string }): Mail => ({
  to: link.to,
  subject: "A balance was claimed for your email address",
  text: `Someone who has an API key of the balance ${link.balance} claimed it for this email address.

If that was you, open this link to sign in and take the balance into your account:

${address(link)}

The link works once and expires in ${link.minutes} minutes. If it was not you, ignore this mail: the balance then never becomes
yours. The person who set the balance up keeps its recovery secret, and can take it back for ${UNDO_DAYS} days: do not add credit to a
balance that someone else holds a key to.
`,
});

interface LowCredit {
  readonly to: Email;
  readonly balance: string;
  readonly left: NanoUsd;
  readonly below: NanoUsd;
  readonly dashboardUrl: string;
  readonly contact: string | null;
}

export const lowCreditMail = ({ to, balance, left, below, dashboardUrl, contact }: LowCredit): Mail => ({
  to,
  subject: "Your credit is running low",
  text: `Your balance ${balance} has ${formatUsd(left)} of credit left. Requests that it cannot cover are refused.

What it is spent on:

${dashboardUrl}

To add credit, write to ${operatorAt(contact)}.

You get this mail when the credit falls below ${formatUsd(below)}, and not again until there was more in between. You can change this
amount on the dashboard's page Credit.
`,
});

/**
 * Behind the hash, so that neither a server on the way nor a scanner that opens links ever sends the token
 * anywhere.
 */
const address = ({ dashboardUrl, token }: SignInLink): string => `${dashboardUrl}#signin=${token}`;
