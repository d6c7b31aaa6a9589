import { afterEach, expect, spyOn, test } from "bun:test";
import {
  type DeliveryFailure,
  EventDelivery,
  OPERATORS_PACE,
} from "../../../src/customers/events/delivery.ts";
import { eventOf } from "../../../src/customers/events/event.ts";
import type { ConfiguredWebhook } from "../../../src/customers/events/webhook.ts";
import { recording } from "../../../src/store/customers/events.ts";
import { SqlWebhookStore } from "../../../src/store/customers/webhook-store.ts";
import { openDatabase } from "../../../src/store/database/sqlite.ts";
import { SqliteDatabase } from "../../../src/store/database/sqlite-database.ts";
import { epochMs, HOUR_MS } from "../../../src/units/clock.ts";
import type { WebhookEventKind } from "../../../src/units/event-kinds.ts";
import { ManualClock } from "../../fakes/clock.ts";
import { until } from "../../fakes/until.ts";

const OPS: ConfiguredWebhook = {
  id: "wh_ops",
  url: "http://ops.test",
  format: "signed",
  kinds: null,
  secrets: ["whsec_"],
  lowCredit: null,
};
const REFUSED: DeliveryFailure = { problem: "the endpoint answered 500", isFinal: false };

const worlds: World[] = [];
afterEach(async () => {
  for (const world of worlds.splice(0)) await world.close();
});

/** One store, and processes that send from it; time passes when a test says so. */
class World {
  readonly clock = new ManualClock();
  private readonly db = openDatabase(":memory:");
  private readonly database = new SqliteDatabase(this.db);
  readonly store = new SqlWebhookStore(this.database);
  readonly sent: string[] = [];
  readonly logged: string[] = [];
  readonly processes: EventDelivery[] = [];
  /** What the endpoint answers to an event; null: it takes it. */
  answer: (id: string) => DeliveryFailure | null = () => null;
  webhooks: ConfiguredWebhook[] = [OPS];
  kind: WebhookEventKind = "key.created";
  private events = 0;

  constructor() {
    worlds.push(this);
  }

  start(): void {
    this.processes.push(
      new EventDelivery({
        queue: this.store,
        operators: { store: this.store, webhooks: () => this.webhooks },
        pace: OPERATORS_PACE,
        clock: this.clock,
        log: (event) => this.logged.push(event),
        open: () => ({
          send: async ({ id }) => {
            this.sent.push(id);
            return this.answer(id);
          },
          close() {},
        }),
      }),
    );
  }

  /** Records so many events; returns their ids. */
  async record(count: number): Promise<string[]> {
    const events = Array.from({ length: count }, () => {
      this.events += 1;
      const at = epochMs(this.clock.now() + this.events);
      return eventOf(this.kind, `key_${this.events}`, { at, balance: "bal_a" });
    });
    await this.database.commit(recording(this.database, events));
    return events.map(({ id }) => id);
  }

  async pass(ms: number): Promise<void> {
    for (let passed = 0; passed < ms; passed += STEP_MS) {
      this.clock.advance(Math.min(STEP_MS, ms - passed));
      for (let turn = 0; turn < 50; turn++) await Promise.resolve();
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  async close(): Promise<void> {
    await Promise.all(this.processes.map((one) => one.stop()));
    this.db.close();
  }
}

const STEP_MS = 1_000;

test("events go to an endpoint in their order, each once, whichever of three processes sends", async () => {
  const world = new World();
  for (let process = 0; process < 3; process++) world.start();
  await world.pass(2_000);
  const ids = await world.record(100);
  await until(async () => {
    await world.pass(1_000);
    return world.sent.length >= 100;
  });
  await world.pass(5_000);
  expect(world.sent).toEqual(ids);
});

test("an event that an endpoint refuses is sent again later, and the ones behind it wait", async () => {
  const world = new World();
  world.start();
  await world.pass(2_000);
  const [first, second] = await world.record(2);
  world.answer = () => REFUSED;
  await world.pass(3_000);
  expect(world.sent).toEqual([first!]);
  world.answer = () => null;
  await world.pass(7_000);
  expect(world.sent).toEqual([first!, first!, second!]);
});

test("an endpoint that never answers is paused after three days, and goes on when the gateway starts", async () => {
  const world = new World();
  world.start();
  await world.pass(2_000);
  const [only] = await world.record(1);
  world.answer = () => REFUSED;
  const waits = [1_000, 6_000, 301_000, 1_801_000, ...[2, 5, 10, 14, 20, 24].map((hours) => hours * HOUR_MS)];
  for (const wait of waits) {
    world.clock.advance(wait);
    await world.pass(3_000);
  }
  expect(world.sent).toEqual(new Array(10).fill(only!));
  expect(world.logged.filter((event) => event === "webhook paused")).toHaveLength(1);
  world.clock.advance(48 * HOUR_MS);
  await world.pass(3_000);
  expect(world.sent).toHaveLength(10);

  world.answer = () => null;
  world.start();
  await world.pass(12_000);
  expect(world.sent).toHaveLength(11);
});

test("an endpoint that takes an event between two failures is asked again as after its first failure", async () => {
  const world = new World();
  world.start();
  await world.pass(2_000);
  const [first, second] = await world.record(2);
  world.answer = () => REFUSED;
  await world.pass(3_000);
  world.clock.advance(6_000);
  await world.pass(3_000);
  world.answer = (id) => (id === first ? null : REFUSED);
  world.clock.advance(301_000);
  await world.pass(3_000);
  expect(world.sent).toEqual([first!, first!, first!, second!]);
  world.answer = () => null;
  await world.pass(7_000);
  expect(world.sent.at(-1)).toBe(second!);
  expect(world.sent).toHaveLength(5);
});

test("an endpoint that is gone is paused at once", async () => {
  const world = new World();
  world.start();
  await world.pass(2_000);
  await world.record(2);
  world.answer = () => ({ problem: "the endpoint answered 410", isFinal: true });
  await world.pass(20_000);
  expect(world.sent).toHaveLength(1);
  expect(world.logged).toContain("webhook paused");
});

test("a process that ends while it sends leaves the rest to another one, after a minute", async () => {
  const world = new World();
  world.start();
  await world.pass(2_000);
  const ids = await world.record(2);
  // As a process that was killed: it has claimed the endpoint, and sends nothing.
  expect(await world.store.claim(world.clock.now(), epochMs(world.clock.now() + 60_000), 1)).toHaveLength(1);
  await world.pass(30_000);
  expect(world.sent).toEqual([]);
  await world.pass(35_000);
  expect(world.sent).toEqual(ids);
});

test("nothing of charges is recorded while no endpoint wants it, nor for one that the configuration drops", async () => {
  const world = new World();
  world.webhooks = [];
  world.kind = "credit.low";
  world.start();
  await world.pass(2_000);
  await world.record(3);
  expect(await world.store.claim(world.clock.now(), world.clock.now(), 1)).toBeNull();
  expect(await world.store.forget(epochMs(world.clock.now() + HOUR_MS))).toBe(0);
});

test("old events are looked for when the gateway starts, and then once an hour", async () => {
  const world = new World();
  const forget = spyOn(world.store, "forget");
  world.start();
  await world.pass(60_000);
  expect(forget).toHaveBeenCalledTimes(1);
  world.clock.advance(HOUR_MS);
  await world.pass(60_000);
  expect(forget).toHaveBeenCalledTimes(2);
});

test("an event that is noticed again is recorded once, also after it was delivered", async () => {
  const world = new World();
  await world.store.configure([OPS]);
  const event = eventOf("key.created", "key_x", { at: world.clock.now(), balance: "bal_a" });
  const database = (world as unknown as { database: SqliteDatabase }).database;
  await database.commit(recording(database, [event]));
  await database.commit(recording(database, [event]));
  expect(await world.store.waiting("wh_ops", 10)).toEqual([event]);
  const [claimed] = (await world.store.claim(world.clock.now(), epochMs(world.clock.now() + 1), 1))!;
  const state = { failures: 0, problem: null, pausedAt: null, dueAt: world.clock.now() };
  await world.store.note(claimed!, [event.id], state, world.clock.now());
  await database.commit(recording(database, [event]));
  expect(await world.store.waiting("wh_ops", 10)).toEqual([]);
});
