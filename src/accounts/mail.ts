import type { Email } from "./email.ts";

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

It works once, within ${link.minutes} minutes. If you did not ask for it, ignore this mail: nothing happens without the link.
`,
});

/** Says which key claimed what, so that readers can tell their own claim from a stranger's. */
export const claimMail = (link: SignInLink & { balance: string }): Mail => ({
  to: link.to,
  subject: "A balance was claimed for your address",
  text: `Somebody who has an API key of the balance ${link.balance} claimed it for this mail address.

If that was you, open this link to sign in and take the balance into your account:

${address(link)}

It works once, within ${link.minutes} minutes. If it was not you, ignore this mail: the balance then never becomes yours. Add no
credit to a balance that somebody else holds a key of.
`,
});

/** Behind the hash, so that neither a server on the way nor a scanner that opens links ever sends the token anywhere. */
const address = ({ dashboardUrl, token }: SignInLink): string => `${dashboardUrl}#signin=${token}`;
