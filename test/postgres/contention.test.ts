import { afterAll, beforeAll, expect, test } from "bun:test";
import { Postgres } from "../../src/store/database/postgres.ts";
import { systemClock } from "../../src/units/clock.ts";
import { StoreContended, StoreUnreachable } from "../../src/units/errors/bookkeeping.ts";
import { describeOnPostgres } from "./fixture.ts";

const DEADLINE_MS = 30_000;

describeOnPostgres("work that meets others in the database", (cluster) => {
  let postgres: Postgres;
  beforeAll(async () => {
    const url = await cluster.database();
    const own = new Bun.SQL(url, { max: 1 });
    // Not what the store's statements are written for: it has to ask for its own.
    await own.unsafe(
      `ALTER DATABASE ${new URL(url).pathname.slice(1)} SET default_transaction_isolation = 'repeatable read'`,
    );
    await own.unsafe(`
      CREATE TABLE counted (one INT PRIMARY KEY, many INT);
      INSERT INTO counted VALUES (1, 0), (2, 0);
      CREATE TABLE seats (name TEXT PRIMARY KEY);
      CREATE SEQUENCE attempts;
      CREATE FUNCTION fail(state TEXT, times BIGINT) RETURNS BIGINT LANGUAGE plpgsql AS $$
        DECLARE attempt BIGINT := nextval('attempts');
        BEGIN
          IF attempt <= times THEN RAISE EXCEPTION 'attempt %', attempt USING ERRCODE = state; END IF;
          RETURN attempt;
        END $$;`);
    await own.close();
    postgres = new Postgres({ url, connections: 4, deadlineMs: DEADLINE_MS }, noting);
  }, 600_000);
  afterAll(async () => {
    await postgres.close();
  });

  let pausesMs: number[] = [];
  const noting = {
    after(ms: number, run: () => void) {
      if (ms !== DEADLINE_MS) pausesMs.push(ms);
      return systemClock.after(ms, run);
    },
  };

  const asOne = {
    "a transaction": (state: string, times: number) =>
      postgres.transaction((sql) => sql<{ fail: bigint }[]>`SELECT fail(${state}, ${times})`),
    "a statement": (state: string, times: number) =>
      postgres.query<{ fail: number }>((sql) => sql`SELECT fail(${state}, ${times})`),
  };
  const restart = () => postgres.query((sql) => sql`ALTER SEQUENCE attempts RESTART`);

  for (const [name, send] of Object.entries(asOne)) {
    for (const state of ["40001", "40P01", "23505"]) {
      test(`${name} that loses to others (${state}) is run again`, async () => {
        await restart();
        const [row] = await send(state, 3);
        expect(Number(row!.fail)).toBe(4);
      });
    }

    test(`${name} that always loses waits longer each time, and is given up`, async () => {
      await restart();
      pausesMs = [];
      const lost = send("40001", 1_000);
      await expect(lost).rejects.toBeInstanceOf(StoreContended);
      await expect(lost).rejects.toMatchObject({ cause: { errno: "40001", message: "attempt 10" } });
      expect(pausesMs).toEqual([2, 4, 8, 16, 32, 64, 100, 100, 100]);
    });

    for (const state of ["08006", "40003", "53300", "55P03", "57014", "57P01", "58030"]) {
      test(`${name} that the database cannot serve (${state}) may have happened, and is not repeated`, async () => {
        await restart();
        const failed = send(state, 1_000);
        await expect(failed).rejects.toBeInstanceOf(StoreUnreachable);
        await expect(failed).rejects.toMatchObject({ cause: { message: "attempt 1" } });
      });
    }
  }

  test("of two transactions that wait for each other both are done", async () => {
    const both = Promise.withResolvers<void>();
    let first = 0;
    let attempts = 0;
    const add = (rows: readonly number[]) =>
      postgres.transaction(async (sql) => {
        attempts += 1;
        for (const row of rows) {
          await sql`UPDATE counted SET many = many + 1 WHERE one = ${row}`;
          if (++first === 2) both.resolve();
          await both.promise;
        }
      });
    await Promise.all([add([1, 2]), add([2, 1])]);
    const rows = await postgres.query<{ many: number }>((sql) => sql`SELECT many FROM counted`);
    expect(rows.map(({ many }) => many)).toEqual([2, 2]);
    expect(attempts).toBeGreaterThan(2);
  }, 600_000);

  for (const isolation of ["repeatable read", "serializable"] as const) {
    test(`a transaction that asks for ${isolation} runs so`, async () => {
      const [row] = await postgres.transaction(
        (sql) => sql<{ transaction_isolation: string }[]>`SHOW transaction_isolation`,
        { isolation },
      );
      expect(row!.transaction_isolation).toBe(isolation);
    });
  }

  test("who waited for a lock sees what was committed meanwhile", async () => {
    const locked = Promise.withResolvers<void>();
    const waiting = Promise.withResolvers<void>();
    const before = postgres.transaction(async (sql) => {
      await sql`SELECT one FROM counted WHERE one = 1 FOR UPDATE`;
      locked.resolve();
      await waiting.promise;
      await sql`INSERT INTO seats VALUES ('the only one')`;
    });
    await locked.promise;
    const after = postgres.transaction(async (sql) => {
      await sql`SELECT one FROM counted WHERE one = 1 FOR UPDATE`;
      return sql`SELECT name FROM seats`;
    });
    const blocked = () => postgres.query((sql) => sql`SELECT 1 FROM pg_locks WHERE NOT granted`);
    while ((await blocked()).length === 0);
    waiting.resolve();
    await before;
    expect([...(await after)]).toEqual([{ name: "the only one" }]);
  }, 600_000);
});
