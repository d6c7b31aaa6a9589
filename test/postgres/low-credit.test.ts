import { expect, test } from "bun:test";
import { MailServer } from "../fakes/mail-server.ts";
import { open } from "../gateway/open.ts";
import { notifiesOwnersOnce } from "../gateway/own-low-credit.ts";
import { describeOnPostgres } from "./fixture.ts";

describeOnPostgres("three gateways on one PostgreSQL", (cluster) => {
  test("send one mail when credit runs low, whichever served the requests", async () => {
    const server = await MailServer.start();
    const store = await cluster.database();
    const smtp = `smtp: { host: 127.0.0.1, port: ${server.port}, from: a@gateway.test }`;
    const config = `store: ${store}\nlow_credit_usd: 0.9998\n${smtp}\n`;
    const gateways = await Promise.all([1, 2, 3].map(() => open(config)));
    const { key, balance_id } = await gateways[0]!.key(1);
    await gateways[1]!.send("POST", "/v1/me/claim", { bearer: key, json: { email: "kim@example.com" } });
    const token = /#signin=(or-link-\w+)/.exec((await server.mail(1)).text)![1]!;
    await gateways[2]!.send("POST", "/v1/auth/email/verify", { json: { token } });
    for (let request = 0; request < 6; request++) {
      const content = "word ".repeat(200);
      const messages = [{ role: "user", content }];
      await gateways[request % 3]!.chat(key, { model: "sim/echo", messages });
    }
    expect((await server.mail(2)).text).toContain(`Your balance ${balance_id} has $0.99`);
    for (const gateway of gateways) await gateway.close();
    expect(server.mails).toHaveLength(2);
    const news = gateways.flatMap(({ logged }) => logged.filter((line) => line.includes('"low credit"')));
    expect(news).toHaveLength(1);
    await server.stop();
  }, 60_000);

  test("notify owners once of each crossing of their own threshold", async () => {
    const store = await cluster.database();
    const gateways = await Promise.all([1, 2, 3].map(() => open(`store: ${store}\n`)));
    await notifiesOwnersOnce(gateways.map(({ url }) => url));
    for (const gateway of gateways) await gateway.close();
  }, 60_000);
});
