import { afterAll, expect, test } from "bun:test";
import { openGateway } from "../../src/server/open-gateway.ts";
import { systemClock } from "../../src/units/clock.ts";
import { MailServer } from "../fakes/mail-server.ts";
import { Folder } from "../process/gateway.ts";
import { OpenGateway } from "./open.ts";

const server = await MailServer.start();
const folder = new Folder(`
low_credit_usd: 0.99995
contact: https://example.com/credit
smtp: { host: 127.0.0.1, port: ${server.port}, from: a@gateway.test }
`);
let gateway = await started();
afterAll(async () => {
  await gateway.gateway.stop();
  await server.stop();
  folder.remove();
});

async function started(): Promise<OpenGateway> {
  const logged: string[] = [];
  const log = (event: string, fields = {}) => logged.push(JSON.stringify({ event, ...fields }));
  return new OpenGateway(
    await openGateway({ env: folder.env, cwd: folder.path, clock: systemClock, log }),
    folder,
    logged,
  );
}

const SPENDING = { model: "sim/echo", messages: [{ role: "user", content: "word ".repeat(200) }] };

test("the owner of an account gets a mail when credit runs low, once over restarts, and again later", async () => {
  const { key, balance_id } = await gateway.key(1);
  await gateway.send("POST", "/v1/me/claim", { bearer: key, json: { email: "kim@example.com" } });
  const token = /#signin=(or-link-\w+)/.exec((await server.mail(1)).text)![1]!;
  await gateway.send("POST", "/v1/auth/email/verify", { json: { token } });
  expect((await gateway.chat(key, SPENDING)).status).toBe(200);

  const { to, text } = await server.mail(2);
  expect(to).toEqual(["kim@example.com"]);
  expect(text).toContain(`Your balance ${balance_id} has $0.99`);
  expect(text).toContain(`${gateway.url}/dashboard`);
  expect(text).toContain("(https://example.com/credit)");
  const news = gateway.logged.filter((line) => line.includes('"low credit"')).map((line) => JSON.parse(line));
  expect(news).toMatchObject([{ balance: balance_id, below_usd: 0.99995, has_email: true }]);
  expect(JSON.stringify(gateway.logged)).not.toContain("kim@");

  await gateway.gateway.stop();
  gateway = await started();
  expect((await gateway.chat(key, SPENDING)).status).toBe(200);
  await gateway.credit(balance_id, 1);
  const debit = { balance_id, amount_usd: 1.5, idempotency_key: "back" };
  expect((await gateway.admin("/admin/debits", debit)).status).toBe(200);
  expect((await server.mail(3)).text).toContain("has $0.49");
  expect(server.mails).toHaveLength(3);
});
