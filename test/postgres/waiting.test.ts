import { afterEach, beforeAll, beforeEach, expect, test } from "bun:test";
import { Postgres } from "../../src/store/database/postgres.ts";
import { StoreContended, StoreUnreachable } from "../../src/units/errors/bookkeeping.ts";
import { ManualClock } from "../fakes/clock.ts";
import { type Gate, gate } from "../fakes/gate.ts";
import { describeOnPostgres } from "./fixture.ts";

const DEADLINE_MS = 5_000;
const WAIT_MS = 3 * DEADLINE_MS;

describeOnPostgres("work that waits for one of the connections", (cluster) => {
  let url: string;
  let clock: ManualClock;
  let postgres: Postgres;
  beforeAll(async () => {
    url = await cluster.database();
  }, 600_000);
  beforeEach(() => {
    clock = new ManualClock();
    postgres = new Postgres({ url, connections: 1, deadlineMs: DEADLINE_MS, maxWaiting: 2 }, clock);
  });
  afterEach(async () => {
    await postgres.close();
  });

  /** A transaction that goes on until it is let go. */
  function open(options = {}): { done: Promise<unknown>; started: Gate<void>; ending: Gate<void> } {
    const [started, ending] = [gate(), gate()];
    const done = postgres.transaction(async (sql) => {
      await sql`SELECT 1`;
      started.open();
      await ending.passed;
    }, options);
    done.catch(() => {});
    return { done, started, ending };
  }

  test("has the whole deadline once it has a connection", async () => {
    const first = open();
    await first.started.passed;
    const second = open();
    clock.advance(DEADLINE_MS * 0.9);
    first.ending.open();
    await second.started.passed;
    clock.advance(DEADLINE_MS * 0.9);
    second.ending.open();
    await Promise.all([first.done, second.done]);
  });

  test("gets a time to retry where too many wait, or for too long, although the database answers", async () => {
    const first = open();
    await first.started.passed;
    const waiting = [open({ deadlineMs: 10 * DEADLINE_MS }), open()];
    await expect(open().done).rejects.toBeInstanceOf(StoreContended);
    first.ending.open();
    await waiting[0]!.started.passed;
    clock.advance(WAIT_MS - 1);
    const last = open();
    clock.advance(1);
    await expect(waiting[1]!.done).rejects.toBeInstanceOf(StoreContended);
    waiting[0]!.ending.open();
    await last.started.passed;
    last.ending.open();
    await last.done;
  });

  test("learns that the database does not answer, where it did not answer anybody meanwhile", async () => {
    const first = open({ deadlineMs: 10 * DEADLINE_MS });
    await first.started.passed;
    const second = open();
    clock.advance(WAIT_MS);
    first.ending.open();
    await expect(second.done).rejects.toBeInstanceOf(StoreUnreachable);
  });

  test("comes after what all requests of the node depend on, and makes room for that", async () => {
    const order: string[] = [];
    const first = open();
    await first.started.passed;
    const ordinary = ["one", "two"].map((name) =>
      postgres.query((sql) => sql`SELECT 1`).then(() => order.push(name)),
    );
    const crowded = ordinary[1]!.catch((error) => error);
    const urgent = postgres
      .transaction((sql) => sql`SELECT 1`, { urgent: true })
      .then(() => order.push("urgent"));
    expect(await crowded).toBeInstanceOf(StoreContended);
    first.ending.open();
    await Promise.all([urgent, ordinary[0]]);
    expect(order).toEqual(["urgent", "one"]);
  });
});
