import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Mail } from "../../../src/customers/accounts/mail.ts";
import { Mailer, transportTo } from "../../../src/customers/mail/mailer.ts";
import { systemClock } from "../../../src/units/clock.ts";
import { systemRandom } from "../../../src/units/random.ts";
import { MailServer } from "../../fakes/mail-server.ts";

const MAIL = { to: "kim@example.com", subject: "News", text: "None.\n" } as Mail;

let server: MailServer;
let folder: string;
beforeEach(async () => {
  server = await MailServer.start();
  folder = mkdtempSync(join(tmpdir(), "mailer-"));
});
afterEach(async () => {
  await server.stop();
  rmSync(folder, { recursive: true });
});

const mailer = (port: number | null): Mailer =>
  new Mailer({
    folder,
    clock: { ...systemClock, after: (_, fire) => systemClock.after(1, fire) },
    random: systemRandom,
    smtp: () =>
      port === null ? null : { host: "127.0.0.1", port, user: null, password: null, from: "a@g.test" },
    log: () => {},
  });

test.each([
  ["at once", [], "sent"],
  ["at the third attempt", [451, 451], "sent"],
  ["never, because the server stays busy", [451, 451, 451], "failed"],
  ["never, because the server does not want it", [550], "refused"],
] as const)("the sender of a mail learns its outcome: taken %s", async (_, refusals, outcome) => {
  server.refusals.push(...refusals);
  const sender = mailer(server.port);
  expect(await sender.deliver(MAIL)).toBe(outcome);
  expect(server.mails).toHaveLength(outcome === "sent" ? 1 : 0);
  await sender.close();
});

test("a mail server that cannot be reached is no refusal", async () => {
  const { port } = server;
  const gone = await MailServer.start();
  const nobody = gone.port;
  await gone.stop();
  expect(nobody).not.toBe(port);
  expect(await mailer(nobody).deliver(MAIL)).toBe("failed");
});

test("without a server, a mail is sent once its file is written", async () => {
  expect(await mailer(null).deliver(MAIL)).toBe("sent");
  expect(readdirSync(join(folder, "outbox"))).toHaveLength(1);
  rmSync(join(folder, "outbox"), { recursive: true });
  writeFileSync(join(folder, "outbox"), "in the way");
  expect(await mailer(null).deliver(MAIL)).toBe("failed");
});

test("processes that share an outbox and tidy it at the same time all write their mails", async () => {
  const writer = `
    const { Mailer } = await import(${JSON.stringify(join(import.meta.dir, "../../../src/customers/mail/mailer.ts"))});
    const { systemClock } = await import(${JSON.stringify(join(import.meta.dir, "../../../src/units/clock.ts"))});
    const { systemRandom } = await import(${JSON.stringify(join(import.meta.dir, "../../../src/units/random.ts"))});
    const mailer = new Mailer({
      folder: ${JSON.stringify(folder)}, clock: systemClock, random: systemRandom, smtp: () => null, log: console.log,
    });
    for (let mail = 0; mail < 400; mail++) await mailer.deliver({ to: "kim@example.com", subject: "s", text: "t" });`;
  const writers = [1, 2].map(() => Bun.spawn([process.execPath, "-e", writer], { stdout: "pipe" }));
  const complaints = await Promise.all(writers.map(({ stdout }) => new Response(stdout).text()));
  expect(complaints).toEqual(["", ""]);
  expect(readdirSync(join(folder, "outbox"))).toHaveLength(50);
});

test("a server that does not know the recipient refuses the mail", async () => {
  const strict = await MailServer.start({
    onRcptTo: (_address, _session, done) => done(Object.assign(new Error("who?"), { responseCode: 550 })),
  });
  const sender = mailer(strict.port);
  expect(await sender.deliver(MAIL)).toBe("refused");
  await sender.close();
  await strict.stop();
});

test.each([
  ["localhost", "user", false],
  ["127.0.0.1", "user", false],
  ["::1", "user", false],
  ["mail.example.com", "user", true],
  ["mail.example.com", null, false],
])(
  "a password goes to %s only behind TLS, except on this machine: %s, %p",
  async (host, user, requireTLS) => {
    const transport = await transportTo({ host, port: 587, user, password: "secret", from: "a@g.test" });
    expect(transport.options).toMatchObject({ host, secure: false, requireTLS });
    transport.close();
  },
);
