import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Statement } from "../../src/ledger/authority.ts";
import { migratePostgres, Postgres } from "../../src/store/database/postgres.ts";
import { PostgresDatabase } from "../../src/store/database/postgres-database.ts";
import { postgresAuthority } from "../../src/store/ledger/grants.ts";
import { PostgresRegistry } from "../../src/store/nodes/postgres-registry.ts";
import { systemClock } from "../../src/units/clock.ts";
import { json } from "../fakes/behaviours.ts";
import { type FakeHost, startFakeHost } from "../fakes/host.ts";
import { oneHost } from "../fakes/one-host.ts";
import { chatText } from "../fakes/transcripts.ts";
import { type OpenGateway, open } from "../gateway/open.ts";
import { describeOnPostgres } from "./fixture.ts";

describeOnPostgres("what nodes tell each other through the database", (cluster) => {
  let host: FakeHost;
  let gateways: OpenGateway[] = [];
  beforeAll(async () => {
    host = await startFakeHost(() => json(chatText(["ok"], { input: 10, output: 100 }).whole));
  });
  afterAll(async () => {
    await host.close();
  });

  async function pair(store: string): Promise<[OpenGateway, OpenGateway]> {
    const both = await Promise.all([open(config(host.url, store)), open(config(host.url, store))]);
    gateways = both;
    return both;
  }
  async function closeAll(): Promise<void> {
    for (const gateway of gateways.splice(0)) await gateway.close();
  }

  test("arrives once it is so", async () => {
    const store = await cluster.database();
    const [one] = await pair(store);
    const changed = Promise.withResolvers<void>();
    const ear = new Bun.SQL(store, { max: 1 });
    await ear.listen("gateway_changes", () => changed.resolve());
    const key = await one.key(1);
    await one.send("DELETE", `/v1/keys/${key.id}`, { bearer: key.key });
    await changed.promise;
    await ear.close();
    await closeAll();
  }, 600_000);

  test("is not needed for a change to be answered and to hold", async () => {
    const [one, other] = await pair(await speechless("changer"));
    const key = await one.key(1);
    for (const gateway of [one, other]) expect((await gateway.chat(key.key)).status).toBe(200);
    expect((await one.send("DELETE", `/v1/keys/${key.id}`, { bearer: key.key })).status).toBe(200);
    for (const gateway of [one, other]) expect((await gateway.chat(key.key)).status).toBe(401);
    await closeAll();
  }, 600_000);

  test("is not needed for a grant, were it of what others do not use", async () => {
    const postgres = new Postgres(
      { url: await speechless("settler"), connections: 2, deadlineMs: 5_000 },
      systemClock,
    );
    await migratePostgres(postgres);
    const registry = new PostgresRegistry(new PostgresDatabase(postgres), () => {
      throw new Error("nobody here leaves a stream open");
    });
    for (const name of ["n0", "n1"]) {
      const { epoch, seen } = await registry.join(name);
      await registry.renew(name, epoch, seen);
    }
    const authority = postgresAuthority(new PostgresDatabase(postgres));
    const body = {
      epoch: 1,
      number: 1,
      counter: "day:key_1:0",
      used: 0,
      needed: 0,
      limit: 1_000,
      answeredInquiry: 0,
      inquiry: 0,
    };
    await authority.settle({ ...body, ledger: "n0", requested: 900 } as Statement);
    const short = await authority.settle({
      ...body,
      ledger: "n1",
      needed: 500,
      requested: 500,
    } as Statement);
    expect({ ...short }).toMatchObject({ granted: 100, spare: 900 });
    await postgres.close();
  });

  test("is not needed for credit that others were granted and do not use, down to the last", async () => {
    const [one, other] = await pair(await speechless("spender"));
    // Each request costs $0.001.
    const key = await one.key(0.02);
    for (const gateway of [one, other]) expect((await gateway.chat(key.key)).status).toBe(200);
    let served = 2;
    while ((await one.chat(key.key)).status === 200) served += 1;
    expect(served).toBe(20);
    await closeAll();
  }, 600_000);

  /** A database whose user may not call what says words on channels. */
  async function speechless(role: string): Promise<string> {
    const store = await cluster.database();
    const sql = new Bun.SQL(store, { max: 1 });
    await sql
      .unsafe(`
        CREATE ROLE ${role} LOGIN;
        GRANT CREATE ON SCHEMA public TO ${role};
        REVOKE EXECUTE ON FUNCTION pg_notify FROM PUBLIC;`)
      .simple();
    await sql.close();
    const url = store.replace("//gateway@", `//${role}@`);
    const own = new Bun.SQL(url, { max: 1 });
    await expect(own`SELECT pg_notify('said', '')`.execute()).rejects.toMatchObject({ errno: "42501" });
    await own.close();
    return url;
  }
});

const config = (host: string, store: string): string => `${oneHost(host)}\nstore: ${store}\n`;
