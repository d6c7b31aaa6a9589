import { expect, test } from "bun:test";
import { migratePostgres, Postgres } from "../../src/store/postgres/postgres.ts";
import { PostgresStatements } from "../../src/store/postgres/statements.ts";
import { SqlLowCreditStore } from "../../src/store/sql/low-credit-store.ts";
import { systemClock } from "../../src/units/clock.ts";
import { MailServer } from "../fakes/mail-server.ts";
import { HurriedClock } from "../gateway/hurried-clock.ts";
import { open } from "../gateway/open.ts";
import { lowCreditCases } from "../store/low-credit-cases.ts";
import { describeOnPostgres } from "./fixture.ts";

describeOnPostgres("low credit, remembered in PostgreSQL", (cluster) => {
  lowCreditCases(async () => {
    const url = await cluster.database();
    const postgres = new Postgres({ url, connections: 4, deadlineMs: 30_000 }, systemClock);
    await migratePostgres(postgres);
    return {
      store: new SqlLowCreditStore(new PostgresStatements(postgres)),
      async addAccount(id, email) {
        await postgres.query(
          (sql) =>
            sql`INSERT INTO accounts (id, email, created_at, proved_at) VALUES (${id}, ${email}, 1, 1)`,
        );
      },
      async addBalance(id, account) {
        await postgres.query(
          (sql) => sql`INSERT INTO balances (id, account_id, created_at) VALUES (${id}, ${account}, 1)`,
        );
      },
      async setMoney(balance, credited, spent) {
        await postgres.query(
          (sql) => sql`INSERT INTO counters (id, credited, spent)
            VALUES (${`balance:${balance}`}, ${credited}, ${spent})
            ON CONFLICT (id) DO UPDATE SET credited = excluded.credited, spent = excluded.spent`,
        );
      },
      async suspendAccount(id, reason) {
        await postgres.query((sql) => sql`UPDATE accounts SET suspended = ${reason} WHERE id = ${id}`);
      },
      close: () => postgres.close(),
    };
  });
});

describeOnPostgres("three gateways on one PostgreSQL", (cluster) => {
  test("send one mail when credit runs low, whichever served the requests", async () => {
    const server = await MailServer.start();
    const store = await cluster.database();
    const clock = new HurriedClock(300_000);
    const smtp = `smtp: { host: 127.0.0.1, port: ${server.port}, from: a@gateway.test }`;
    const config = `store: ${store}\nlow_credit_usd: 0.9998\n${smtp}\n`;
    const gateways = await Promise.all([1, 2, 3].map(() => open(config, {}, clock)));
    const { key, balance_id } = await gateways[0]!.key(1);
    await gateways[1]!.send("POST", "/v1/me/claim", { bearer: key, json: { email: "kim@example.com" } });
    const token = /#signin=(or-link-\w+)/.exec((await server.mail(1)).text)![1]!;
    await gateways[2]!.send("POST", "/v1/auth/email/verify", { json: { token } });
    await clock.more(6);
    for (let request = 0; request < 6; request++) {
      const content = "word ".repeat(200);
      const messages = [{ role: "user", content }];
      await gateways[request % 3]!.chat(key, { model: "sim/echo", messages });
    }
    expect((await server.mail(2)).text).toContain(`Your balance ${balance_id} has $0.99`);
    await clock.more(12);
    for (const gateway of gateways) await gateway.close();
    expect(server.mails).toHaveLength(2);
    const news = gateways.flatMap(({ logged }) => logged.filter((line) => line.includes('"low credit"')));
    expect(news).toHaveLength(1);
    await server.stop();
  });
});
