import { mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Transporter } from "nodemailer";
import { randomBase58 } from "../../units/base58.ts";
import { type Clock, pause } from "../../units/clock.ts";
import type { Log } from "../../units/log.ts";
import type { RandomBytes } from "../../units/random.ts";
import type { Mail } from "../accounts/mail.ts";

/**
 * Sends mails over SMTP if a server is configured. Otherwise writes them to files, for trying the gateway out
 * or for an operator who passes links on by hand. Posting a mail never waits for a mail server.
 */
export class Mailer {
  private smtp: { readonly config: SmtpConfig; readonly transport: Promise<Transporter> } | null = null;
  private readonly sending = new Set<Promise<unknown>>();
  private files = 0;
  private hasLogged = false;

  constructor(private readonly deps: MailerDeps) {}

  post(mail: Mail): void {
    if (this.sending.size >= MAX_SENDING) {
      this.deps.log("mail", { problem: "too many mails are being sent; one was dropped" });
      return;
    }
    void this.deliver(mail);
  }

  /** For a caller that can wait, and sends one mail after another. */
  async deliver(mail: Mail): Promise<MailOutcome> {
    const config = this.deps.smtp();
    if (config === null) return this.tryFile(mail);
    const sent = this.send(mail, config).finally(() => this.sending.delete(sent));
    this.sending.add(sent);
    return sent;
  }

  /** Strangers asked for more mails than the hour has: tells the operator, at most once a minute. */
  heldBack(): void {
    if (this.hasLogged) return;
    this.hasLogged = true;
    this.deps.clock.after(LOGGED_EVERY_MS, () => {
      this.hasLogged = false;
    });
    this.deps.log("mail", { problem: "sign_in.mails_per_hour is reached; who has no account got none" });
  }

  /** Resolves once every mail that was posted is with the server, or given up. */
  async close(): Promise<void> {
    await Promise.all(this.sending);
    (await this.smtp?.transport)?.close();
  }

  private async send({ to, subject, text }: Mail, asPosted: SmtpConfig): Promise<MailOutcome> {
    for (let attempt = 1; ; attempt++) {
      // A reload may have named another server since.
      const config = this.deps.smtp() ?? asPosted;
      try {
        const transport = await this.transport(config);
        await transport.sendMail({
          from: config.from,
          to,
          subject,
          text,
          headers: NOBODY_WROTE_IT,
        });
        return "sent";
      } catch (error) {
        // The server's own words may repeat the recipient or the mail, so they stay out of the log.
        const { code = null, responseCode = null } = error as { code?: string; responseCode?: number };
        const refused = responseCode !== null && responseCode >= 500;
        const final = refused || attempt === ATTEMPTS;
        this.deps.log("mail", { problem: "not sent", code, response: responseCode, attempt, final });
        if (final) return refused && code !== null && ABOUT_THE_MAIL.has(code) ? "refused" : "failed";
        await pause(this.deps.clock, attempt * RETRY_MS);
      }
    }
  }

  /** Made again when a reload changed the server. */
  private transport(config: SmtpConfig): Promise<Transporter> {
    if (this.smtp?.config !== config) {
      void this.smtp?.transport.then((old) => old.close());
      this.smtp = { config, transport: transportTo(config) };
    }
    return this.smtp.transport;
  }

  private tryFile(mail: Mail): MailOutcome {
    try {
      this.file(mail);
      return "sent";
    } catch (error) {
      // The disk may be full. The message names the file, not the mail.
      this.deps.log("mail", { problem: "not written", error: String(error) });
      return "failed";
    }
  }

  private file({ to, subject, text }: Mail): void {
    const folder = join(this.deps.folder, "outbox");
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    this.files += 1;
    // Random as well, because workers share the folder.
    const order = `${this.deps.clock.now()}-${String(this.files).padStart(6, "0")}`;
    const name = `${order}-${randomBase58(8, this.deps.random)}.eml`;
    writeFileSync(join(folder, name), `To: ${to}\nSubject: ${subject}\n\n${text}`, {
      mode: 0o600,
      flag: "wx",
    });
    const kept = readdirSync(folder)
      .filter((file) => file.endsWith(".eml"))
      .sort();
    // Another worker may have removed it first.
    for (const old of kept.slice(0, -MAX_FILES)) rmSync(join(folder, old), { force: true });
  }
}

/** `refused`: the server does not want this mail or recipient, and asking again is of no use. */
export type MailOutcome = "sent" | "refused" | "failed";

interface MailerDeps {
  /** Where `outbox` is made. */
  readonly folder: string;
  readonly clock: Clock;
  readonly random: RandomBytes;
  /** Follows reloads. */
  smtp(): SmtpConfig | null;
  readonly log: Log;
}

/** Suppresses automatic replies (RFC 3834). */
const NOBODY_WROTE_IT = { "Auto-Submitted": "auto-generated" };
/** Nodemailer's codes: no connection and no password is at fault. */
const ABOUT_THE_MAIL = new Set(["EENVELOPE", "EMESSAGE"]);
const MAX_SENDING = 1_000;
const ATTEMPTS = 3;
const RETRY_MS = 2_000;
const LOGGED_EVERY_MS = 60_000;
/** Older mails are worthless: links expire within minutes, and the log tells whose credit is low. */
const MAX_FILES = 50;

/**
 * Port 465 begins with TLS; on others it is asked for, and insisted on before a password is sent. Nodemailer is
 * loaded here, because most gateways send no mails and it is a sixth of what a start loads.
 */
export async function transportTo({ host, port, user, password }: SmtpConfig): Promise<Transporter> {
  const { createTransport } = await import("nodemailer");
  const credentials = user === null ? {} : { auth: { user, pass: password ?? "" } };
  return createTransport({
    host,
    port,
    secure: port === 465,
    requireTLS: user !== null && !LOOPBACK.has(host),
    ...credentials,
    pool: true,
    maxConnections: 2,
    connectionTimeout: TIMEOUT_MS,
    greetingTimeout: TIMEOUT_MS,
    socketTimeout: TIMEOUT_MS,
    disableFileAccess: true,
    disableUrlAccess: true,
  });
}

const TIMEOUT_MS = 10_000;
const LOOPBACK = new Set(["localhost", "127.0.0.1", "::1"]);

export interface SmtpConfig {
  readonly host: string;
  readonly port: number;
  readonly user: string | null;
  readonly password: string | null;
  readonly from: string;
}
