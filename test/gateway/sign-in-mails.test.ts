import { afterEach, expect, test } from "bun:test";
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeAuthority } from "../fakes/certificates.ts";
import { MailServer } from "../fakes/mail-server.ts";
import { type OpenGateway, open } from "./open.ts";

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

async function gatewayWith(config: string): Promise<OpenGateway> {
  const gateway = await open(config);
  closing.push(() => gateway.close());
  return gateway;
}
async function mailServer(options: Parameters<typeof MailServer.start>[0] = {}): Promise<MailServer> {
  const server = await MailServer.start(options);
  closing.push(() => server.stop());
  return server;
}

const tokenIn = (text: string): string => /#signin=(or-link-\w+)/.exec(text)![1]!;

test("over SMTP: claim, sign in by the mailed link, all keys are there", async () => {
  const server = await mailServer();
  const gateway = await gatewayWith(
    `smtp: { host: 127.0.0.1, port: ${server.port}, from: "Gateway <no-reply@gateway.test>" }\n`,
  );
  const { key, id, balance_id } = await gateway.key(0);
  const claimed = await gateway.send("POST", "/v1/me/claim", {
    bearer: key,
    json: { email: "kim@example.com" },
  });
  expect(claimed.json).toMatchObject({ balance_id, email: "kim@example.com" });
  const claimMail = await server.mail(1);
  expect(claimMail.to).toEqual(["kim@example.com"]);
  expect(claimMail.text).toContain("From: Gateway <no-reply@gateway.test>");
  expect(claimMail.text).toContain(`${gateway.url}/dashboard#signin=`);

  expect((await gateway.send("POST", "/v1/auth/email", { json: { email: "kim@example.com" } })).status).toBe(
    202,
  );
  expect((await server.mail(2)).text).toContain("Subject: Your sign-in link");
  const token = tokenIn(claimMail.text);
  const { session } = (await gateway.send("POST", "/v1/auth/email/verify", { json: { token } })).json;
  const keys = (await gateway.send("GET", "/v1/keys", { bearer: session })).json.data;
  expect(keys.map((one: { id: string }) => one.id)).toEqual([id]);
  expect((await gateway.send("GET", "/v1/me", { bearer: key })).json.open_tier.limit).toBe(50);
});

test("a mail server that is busy is asked again; what it says is not logged", async () => {
  const server = await mailServer();
  server.refusals.push(451);
  const gateway = await gatewayWith(
    `smtp: { host: 127.0.0.1, port: ${server.port}, from: a@gateway.test }\n`,
  );
  await gateway.send("POST", "/v1/auth/email", { json: { email: "kim@example.com" } });
  expect((await server.mail(1)).to).toEqual(["kim@example.com"]);
  const logged = gateway.logged.filter((line) => line.includes('"mail"'));
  expect(logged.map((line) => JSON.parse(line).response)).toEqual([451]);
  expect(logged.join()).not.toContain("kim@");
});

test("a password is not sent without TLS, except to this machine", async () => {
  const seen: string[] = [];
  const server = await mailServer({
    allowInsecureAuth: true,
    onAuth: ({ username, password }, _session, done) => {
      seen.push(`${username} ${password}`);
      done(null, { user: username ?? "" });
    },
  });
  const smtp = (host: string) =>
    `smtp: { host: ${host}, port: ${server.port}, user: u, password: p, from: a@gateway.test }\n`;
  const local = await gatewayWith(smtp("127.0.0.1"));
  await local.send("POST", "/v1/auth/email", { json: { email: "kim@example.com" } });
  expect((await server.mail(1)).user).toBe("u");
  const strict = await open(smtp("127.0.0.2"));
  await strict.send("POST", "/v1/auth/email", { json: { email: "kim@example.com" } });
  await strict.close();
  expect(seen).toEqual(["u p"]);
  expect(strict.logged.some((line) => line.includes("not sent"))).toBe(true);
});

test("a mail server with a certificate that nobody vouches for gets no mail", async () => {
  const authority = makeAuthority();
  closing.push(async () => authority.remove());
  const { key, cert } = authority.issue("IP:127.0.0.1");
  const server = await mailServer({ key, cert });
  const gateway = await open(`smtp: { host: 127.0.0.1, port: ${server.port}, from: a@gateway.test }\n`);
  await gateway.send("POST", "/v1/auth/email", { json: { email: "kim@example.com" } });
  await gateway.close();
  expect(server.mails).toEqual([]);
  expect(gateway.logged.some((line) => line.includes("not sent"))).toBe(true);
});

test("a disk that takes no mail is the operator's trouble, not the caller's", async () => {
  const gateway = await gatewayWith("# nothing\n");
  writeFileSync(join(gateway.gateway.folder.path, "outbox"), "in the way");
  expect((await gateway.send("POST", "/v1/auth/email", { json: { email: "kim@example.com" } })).status).toBe(
    202,
  );
  expect(gateway.logged.some((line) => line.includes("not written"))).toBe(true);
});

test("a reload changes the mail server", async () => {
  const [before, after] = [await mailServer(), await mailServer()];
  const smtp = ({ port }: MailServer) => `smtp: { host: 127.0.0.1, port: ${port}, from: a@gateway.test }\n`;
  const gateway = await gatewayWith(smtp(before));
  const requestLink = () => gateway.send("POST", "/v1/auth/email", { json: { email: "kim@example.com" } });
  await requestLink();
  await before.mail(1);
  gateway.folder.configure(smtp(after));
  expect(await gateway.gateway.reload()).toBeNull();
  await requestLink();
  expect((await after.mail(1)).to).toEqual(["kim@example.com"]);
  expect(before.mails.length).toBe(1);
});

test("without SMTP mails are files that only their owner reads, and of many the newest", async () => {
  const gateway = await gatewayWith("# nothing\n");
  for (let turn = 0; turn < 59; turn++) {
    await gateway.send("POST", "/v1/auth/email", { json: { email: `kim${turn}@example.com` } });
  }
  const { key } = await gateway.key(0);
  await gateway.send("POST", "/v1/me/claim", { bearer: key, json: { email: "kim@example.com" } });
  const outbox = join(gateway.gateway.folder.path, "outbox");
  const files = readdirSync(outbox).sort();
  expect(files.length).toBe(50);
  const last = join(outbox, files.at(-1)!);
  expect(statSync(outbox).mode & 0o777).toBe(0o700);
  expect(statSync(last).mode & 0o777).toBe(0o600);
  const text = readFileSync(last, "utf8");
  expect(text).toStartWith("To: kim@example.com\nSubject: ");
  const verified = await gateway.send("POST", "/v1/auth/email/verify", { json: { token: tokenIn(text) } });
  expect(verified.status).toBe(200);
});
