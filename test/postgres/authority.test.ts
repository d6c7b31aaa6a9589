import { afterAll, describe, expect, test } from "bun:test";
import type { Statement } from "../../src/ledger/authority.ts";
import type { CounterId } from "../../src/ledger/counter.ts";
import { EpochFenced } from "../../src/ledger/node-lease.ts";
import { migratePostgres, Postgres } from "../../src/store/database/postgres.ts";
import { PostgresDatabase } from "../../src/store/database/postgres-database.ts";
import { type NodeAuthority, postgresAuthority } from "../../src/store/ledger/grants.ts";
import { PostgresRegistry } from "../../src/store/nodes/postgres-registry.ts";
import { systemClock } from "../../src/units/clock.ts";
import type { NanoUsd } from "../../src/units/usd.ts";
import { FleetAuthority } from "../sim/fleet-authority.ts";
import { Random } from "../sim/random.ts";
import { describeOnPostgres } from "./fixture.ts";

const CAP = "day:key_1:0" as CounterId;

describeOnPostgres("the Authority on PostgreSQL", (cluster) => {
  let postgres: Postgres;
  let address: string;
  afterAll(async () => {
    await postgres.close();
  });

  async function fresh(): Promise<NodeAuthority> {
    if (postgres !== undefined) await postgres.close();
    address = await cluster.database();
    postgres = new Postgres({ url: address, connections: 8, deadlineMs: 30_000 }, systemClock);
    await migratePostgres(postgres);
    return postgresAuthority(new PostgresDatabase(postgres));
  }

  async function join(name: string): Promise<{ epoch: number }> {
    const registry = new PostgresRegistry(new PostgresDatabase(postgres), () => {
      throw new Error("nobody here leaves a stream open");
    });
    const life = await registry.join(name);
    await registry.renew(name, life.epoch, life.seen);
    // A lease lasts longer than these tests, however slow the machine is: nobody renews it.
    await postgres.query(
      (sql) => sql`UPDATE nodes SET lease_until = now() + interval '1 day' WHERE name = ${name}`,
    );
    return life;
  }
  const reserved = async (): Promise<number> => {
    const rows = await postgres.query<{ taken: string }>(
      (sql) => sql`SELECT spent + reserved AS taken FROM counters WHERE id = ${CAP}`,
    );
    return Number(rows[0]?.taken ?? 0);
  };

  test("migrations at once, as of nodes that start together, leave one schema", async () => {
    postgres = new Postgres(
      { url: await cluster.database(), connections: 8, deadlineMs: 30_000 },
      systemClock,
    );
    await Promise.all(Array.from({ length: 6 }, () => migratePostgres(postgres)));
    expect(await postgres.query((sql) => sql`SELECT version FROM latest_change`)).toHaveLength(1);
  });

  test("eight nodes that each want everything are granted the limit once", async () => {
    await fresh();
    const names = Array.from({ length: 8 }, (_, index) => `n${index}`);
    await Promise.all(names.map(join));
    const grants = await Promise.all(
      names.map((name) =>
        postgresAuthority(new PostgresDatabase(postgres)).settle(
          statement(name, { requested: 700, limit: 1_000 }),
        ),
      ),
    );
    const all: number = grants.reduce((sum, { granted }) => sum + granted, 0);
    expect(all).toBe(1_000);
    expect(await reserved()).toBe(1_000);
  });

  test("says the same as the Authority of a keeper, whatever is stated in whatever order", async () => {
    const authority = await fresh();
    const keeper = new FleetAuthority();
    const random = new Random(7);
    for (const name of ["n0", "n1", "n2"]) await join(name);
    const used = new Map<string, number>();
    for (let number = 1; number <= 150; number++) {
      const name = random.pick(["n0", "n1", "n2"]);
      const at = used.get(name) ?? 0;
      const stated = statement(name, {
        number: random.chance(0.9) ? number : Math.max(1, number - 4),
        used: at,
        needed: at + random.below(200),
        requested: at + random.below(400),
        limit: 600 + random.below(400),
        answeredInquiry: random.below(number),
        inquiry: random.below(number),
      });
      const grant = await authority.settle(stated);
      expect(grant).toEqual(keeper.settle(stated)!);
      used.set(name, random.below(grant.granted + 1));
    }
  });

  test("a grant outlives the process that held it until its next life has read the journal", async () => {
    const authority = await fresh();
    const first = await join("n0");
    await authority.settle(statement("n0", { requested: 900, limit: 1_000 }));
    await join("n1");
    const other = await authority.settle(statement("n1", { requested: 500, limit: 1_000 }));
    expect({ ...other }).toMatchObject({ granted: 100, elsewhere: 900 });
    const second = await join("n0");
    expect(second.epoch).toBe(first.epoch + 1);
    const freed = await authority.settle(statement("n1", { number: 2, requested: 500, limit: 1_000 }));
    expect({ ...freed }).toMatchObject({ granted: 500 });
  });

  test("a counter that a node retires is spent by others, once all is shipped that the node has spent of it", async () => {
    const authority = await fresh();
    await join("n0");
    const counter = "budget:bud_1~hash:day:0" as CounterId;
    const state = async (number: number, used: number, most: number, retires = false) => ({
      ...(await authority.settle({
        ...statement("n0", { number, used, needed: used, requested: most, limit: 1_000 }),
        counter,
        ...(retires ? { retires } : {}),
      })),
    });
    expect(await state(1, 0, 600)).toMatchObject({ granted: 600 });
    expect((await state(2, 400, 400, true)).retired).toBeUndefined();
    await postgres.transaction(async (sql) => {
      await sql`UPDATE grants SET shipped = 400`;
      await sql`UPDATE counters SET spent = 400, reserved = reserved - 400`;
    });
    expect(await state(3, 400, 400, true)).toMatchObject({ granted: 0, retired: true });
    // Its answer is lost, and an earlier statement is late.
    expect(await state(4, 400, 400, true)).toMatchObject({ granted: 0, retired: true });
    expect(await state(2, 400, 500)).toMatchObject({ granted: 0 });
    expect(await postgres.query((sql) => sql`SELECT * FROM grants`)).toHaveLength(0);
    expect(await state(5, 0, 900)).toMatchObject({ granted: 600, elsewhere: 400 });
  });

  test("who runs short asks the others for what they do not use", async () => {
    const authority = await fresh();
    const received = Promise.withResolvers<string>();
    const ear = new Bun.SQL(address, { max: 1 });
    await ear.listen("gateway_recalls", received.resolve);
    for (const name of ["n0", "n1"]) await join(name);
    await authority.settle(statement("n0", { requested: 900, limit: 1_000 }));
    const short = await authority.settle(statement("n1", { needed: 500, requested: 500, limit: 1_000 }));
    expect(short.spare).toBe(900 as NanoUsd);
    expect(await received.promise).toBe(`n1 ${CAP} 0`);
    await ear.close();
  });

  describe("an inquiry after what others may have left over", () => {
    /** `n0` has all of the limit, and said that it uses it. */
    async function allHeld(): Promise<NodeAuthority> {
      const authority = await fresh();
      for (const name of ["n0", "n1"]) await join(name);
      await authority.settle(statement("n0", { requested: 1_000, limit: 1_000 }));
      await authority.settle(statement("n0", { number: 2, used: 1_000, requested: 1_000, limit: 1_000 }));
      return authority;
    }
    const short = (authority: NodeAuthority, number: number, inquiry: number) =>
      authority.settle(statement("n1", { number, needed: 500, requested: 500, limit: 1_000, inquiry }));

    test("is over once they have answered it", async () => {
      const authority = await allHeld();
      expect({ ...(await short(authority, 1, 0)) }).toMatchObject({ open: 1_000, spare: 0, inquiry: 0 });
      expect({ ...(await short(authority, 2, 1)) }).toMatchObject({ inquiry: 1, answered: 0 });
      await authority.settle(
        statement("n0", { number: 3, used: 700, requested: 700, limit: 1_000, answeredInquiry: 1 }),
      );
      expect({ ...(await short(authority, 3, 1)) }).toMatchObject({ granted: 300, answered: 1, open: 700 });
    });

    test("is not one after what was spent and shipped", async () => {
      const authority = await allHeld();
      const ship = (amount: number) =>
        postgres.transaction(async (sql) => {
          await sql`UPDATE grants SET shipped = shipped + ${amount} WHERE node = 'n0'`;
          await sql`UPDATE counters SET spent = spent + ${amount}, reserved = reserved - ${amount}`;
        });
      await ship(600);
      expect({ ...(await short(authority, 1, 1)) }).toMatchObject({ open: 400, answered: 0 });
      await ship(400);
      expect({ ...(await short(authority, 2, 2)) }).toMatchObject({ open: 0, answered: 2 });
    });

    test("does not wait for a node whose lease has run out", async () => {
      const authority = await allHeld();
      await postgres.query((sql) => sql`UPDATE nodes SET lease_until = now() WHERE name = 'n0'`);
      expect({ ...(await short(authority, 1, 1)) }).toMatchObject({ open: 0, answered: 1 });
    });
  });

  test("a life that is over is granted nothing", async () => {
    const authority = await fresh();
    await join("n0");
    await join("n0");
    expect(authority.settle(statement("n0", { requested: 1, limit: 10 }))).rejects.toBeInstanceOf(
      EpochFenced,
    );
  });

  test("a balance's limit is its credit in the database, whatever a node says", async () => {
    const authority = await fresh();
    await join("n0");
    const counter = "balance:bal_1" as CounterId;
    await postgres.query((sql) => sql`INSERT INTO counters (id, credited) VALUES (${counter}, 50)`);
    const grant = await authority.settle(statement("n0", { counter, requested: 80, limit: 1_000 }));
    expect({ ...grant }).toMatchObject({ granted: 50, free: 0 });
  });

  // A request that waited while the limit was lowered still states the old one.
  const lowered: [what: string, counter: string][] = [
    ["daily limit", "day:key_1:0"],
    ["monthly limit", "month:key_1:0"],
    ["budget", "budget:bud_1:0"],
    ["run's cap", "run:bal_1/job:5"],
    ["run's calls", "calls:bal_1/job:5"],
  ];
  for (const [what, counter] of lowered) {
    test(`a ${what} is what its owner last set, whatever a node says that does not know it`, async () => {
      const authority = await fresh();
      await join("n0");
      await postgres.query((sql) => sql`INSERT INTO balances (id, created_at) VALUES ('bal_1', 0)`);
      await postgres.query((sql) => sql`INSERT INTO budgets VALUES ('bud_1', 'bal_1', 'team', 50, 'total')`);
      await postgres.query(
        (sql) => sql`INSERT INTO runs (balance_id, name, started_at, used_at, cap, calls)
          VALUES ('bal_1', 'job', 5, 5, 50, 50)`,
      );
      // The last key of a chain counts, not the one that was revoked.
      for (const [id, state, limit] of [
        ["key_1", "revoked", 900],
        ["key_2", "active", 50],
      ]) {
        await postgres.query(
          (sql) => sql`INSERT INTO keys
            (id, hash, prefix, balance_id, lineage, state, created_at, daily_limit, monthly_limit, budgets)
            VALUES (${id}, ${id}, 'or-live-', 'bal_1', 'key_1', ${state}, 0, ${limit}, ${limit}, '[]')`,
        );
      }
      const grant = await authority.settle(statement("n0", { counter, requested: 80, limit: 1_000 }));
      expect({ ...grant }).toMatchObject({ granted: 50, free: 0 });
      const lower = await authority.settle(
        statement("n0", { number: 2, counter, used: 30, needed: 40, requested: 40, limit: 40 }),
      );
      expect({ ...lower }).toMatchObject({ granted: 40, free: 0 });
    });
  }
});

const NOTHING_RECEIVED = { answeredInquiry: 0, inquiry: 0 };

function statement(ledger: string, more: Partial<Record<keyof Statement, unknown>>): Statement {
  return {
    ledger,
    epoch: 1,
    number: 1,
    counter: CAP,
    used: 0,
    needed: 0,
    ...NOTHING_RECEIVED,
    ...more,
  } as Statement;
}
