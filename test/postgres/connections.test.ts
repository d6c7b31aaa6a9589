import { afterAll, beforeAll, expect, test } from "bun:test";
import { Postgres } from "../../src/store/database/postgres.ts";
import { systemClock } from "../../src/units/clock.ts";
import { StoreUnreachable } from "../../src/units/errors/bookkeeping.ts";
import { until } from "../fakes/until.ts";
import { describeOnPostgres } from "./fixture.ts";
import { PostgresWire } from "./wire.ts";

/**
 * A network that swallows packets tells nobody that a connection is gone: neither the node nor PostgreSQL.
 */
describeOnPostgres("a connection that is gone without a word", (cluster) => {
  let wire: PostgresWire;
  let cutOff: Postgres;
  let other: Postgres;
  beforeAll(async () => {
    wire = await PostgresWire.start(cluster.port);
    const options = { connections: 2, deadlineMs: 1_000 };
    const url = cluster.url();
    cutOff = new Postgres({ ...options, url: url.replace(`:${cluster.port}/`, `:${wire.port}/`) }, hasty);
    other = new Postgres({ ...options, url, deadlineMs: 10_000 }, systemClock);
    await other.query((sql) => sql`CREATE TABLE counted (one INT PRIMARY KEY, many INT)`);
    await other.query((sql) => sql`INSERT INTO counted VALUES (1, 0)`);
  });
  afterAll(async () => {
    await other.close();
    await cutOff.close();
    wire.close();
  });

  /** A fiftieth of every wait, and real answers. */
  const hasty = { after: (ms: number, run: () => void) => systemClock.after(ms / 50, run) };

  test("keeps nothing locked that a transaction had locked when it was lost", async () => {
    const lost = cutOff.transaction(
      async (sql) => {
        await sql`SELECT many FROM counted WHERE one = 1 FOR UPDATE`;
        wire.cut();
        await sql`UPDATE counted SET many = 1 WHERE one = 1`;
      },
      { deadlineMs: 50_000 },
    );
    await expect(lost).rejects.toBeInstanceOf(StoreUnreachable);
    await other.query((sql) => sql`UPDATE counted SET many = many + 2 WHERE one = 1`);
    expect(await other.query((sql) => sql`SELECT many FROM counted`)).toEqual([{ many: 2 }]);
    wire.heal();
  }, 600_000);

  test("receives nothing any more, and another one listens in its place", async () => {
    const received = Promise.withResolvers<string>();
    let listening = 0;
    cutOff.listen({
      test_words: (word) => (word === "again" ? received.resolve(word) : void (listening += 1)),
    });
    const notify = (word: string) => other.query((sql) => sql`SELECT pg_notify('test_words', ${word})`);
    await until(async () => {
      await notify("listening?");
      return listening > 0;
    });
    wire.cut();
    wire.heal();
    const saying = setInterval(() => void notify("again"), 50);
    expect(await received.promise).toBe("again");
    clearInterval(saying);
  }, 600_000);
});
