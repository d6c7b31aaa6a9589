import { expect, test } from "bun:test";
import { OpenStreams } from "../../src/generation/stream/open-streams.ts";
import { drain } from "../../src/server/draining.ts";
import { ManualClock } from "../fakes/clock.ts";

/** Streams that take so long to be counted and settled once they are cut, and requests that wait for their answer. */
async function drained({ settleMs, waiting = 0 }: { settleMs: number; waiting?: number }) {
  const clock = new ManualClock();
  const openStreams = new OpenStreams();
  const ledger = { openHolds: 1 + waiting };
  const server = {
    pendingRequests: 1 + waiting,
    closed: Promise.withResolvers<void>(),
    brokenMs: Number.NaN,
    stop(abruptly = false): Promise<void> {
      if (!abruptly) return this.closed.promise;
      this.brokenMs = clock.elapsedMs();
      ledger.openHolds = 0;
      this.closed.resolve();
      return this.closed.promise;
    },
  };
  const stream = {
    notifiedMs: Number.NaN,
    cut(): void {
      openStreams.delete(stream);
      clock.after(settleMs, () => {
        stream.notifiedMs = clock.elapsedMs();
        ledger.openHolds -= 1;
        server.pendingRequests -= 1;
      });
    },
  };
  openStreams.add(stream);
  let over = false;
  const sockets = { leave() {}, areBusy: false };
  const draining = { ledger, openStreams, sockets, passed: null, clock, drainMs: 300 };
  const ended = drain(server as never, draining).then(() => {
    over = true;
  });
  while (!over) {
    await new Promise((resolve) => setImmediate(resolve));
    clock.advance(10);
  }
  await ended;
  return { notifiedMs: stream.notifiedMs, brokenMs: server.brokenMs };
}

test("a stream that is cut ends with an error, however long its count takes, before connections are broken", async () => {
  const { notifiedMs, brokenMs } = await drained({ settleMs: 5_000 });
  expect(notifiedMs).toBeGreaterThan(5_000);
  expect(brokenMs).toBeGreaterThanOrEqual(notifiedMs);
});

test("answers that have not come are not waited for as long", async () => {
  const { brokenMs } = await drained({ settleMs: 10, waiting: 3 });
  expect(brokenMs).toBeLessThan(300 + 2_100);
});

test("what never settles does not keep the gateway from stopping", async () => {
  const { notifiedMs, brokenMs } = await drained({ settleMs: 3_600_000 });
  expect([notifiedMs, brokenMs]).toEqual([Number.NaN, expect.any(Number)]);
  expect(brokenMs).toBeLessThan(20_000);
});
