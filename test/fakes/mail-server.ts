import { SMTPServer, type SMTPServerOptions } from "smtp-server";

/** A real SMTP server on a free port of the loopback interface, which keeps what it was sent. */
export class MailServer {
  readonly mails: ReceivedMail[] = [];
  /** What the next deliveries are answered with, before the server takes mails again. */
  readonly refusals: number[] = [];
  private readonly server: SMTPServer;
  private readonly waiting: (() => void)[] = [];

  private constructor(options: SMTPServerOptions) {
    this.server = new SMTPServer({
      authOptional: true,
      disabledCommands: options.key === undefined ? ["STARTTLS"] : [],
      ...options,
      onData: (stream, { envelope, secure, user }, done) => {
        let text = "";
        stream.on("data", (chunk: Buffer) => {
          text += chunk.toString("utf8");
        });
        stream.on("end", () => {
          const refusal = this.refusals.shift();
          if (refusal !== undefined) {
            done(
              Object.assign(new Error(`not now, ${envelope.rcptTo[0]?.address}`), { responseCode: refusal }),
            );
            return;
          }
          this.mails.push({
            to: envelope.rcptTo.map(({ address }) => address),
            text: decoded(text),
            secure,
            user: user ?? null,
          });
          done();
          for (const wake of this.waiting.splice(0)) wake();
        });
      },
    });
  }

  static async start(options: SMTPServerOptions = {}): Promise<MailServer> {
    const server = new MailServer(options);
    await new Promise<void>((resolve) => server.server.listen(0, "127.0.0.1", resolve));
    return server;
  }

  get port(): number {
    const address = this.server.server.address();
    if (address === null || typeof address === "string") throw new Error("the mail server has no port");
    return address.port;
  }

  /** Resolves with the mail of this number, the first being 1, once it is there. */
  async mail(number: number): Promise<ReceivedMail> {
    while (this.mails.length < number) await new Promise<void>((resolve) => this.waiting.push(resolve));
    return this.mails[number - 1]!;
  }

  stop(): Promise<void> {
    return new Promise((resolve) => this.server.close(resolve));
  }
}

export interface ReceivedMail {
  readonly to: readonly string[];
  readonly text: string;
  readonly secure: boolean;
  readonly user: string | null;
}

/** Quoted-printable, as mail programs undo it. */
const decoded = (text: string): string =>
  text
    .replace(/=\r?\n/g, "")
    .replace(/=([0-9A-F]{2})/g, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16)));
