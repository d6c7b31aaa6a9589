import { expect, test } from "bun:test";
import { balanceCounter } from "../../src/ledger/counter.ts";
import { GrantClaim, Grants } from "../../src/ledger/grants.ts";
import { Ledger } from "../../src/ledger/ledger.ts";
import { Reservation } from "../../src/ledger/reservation.ts";
import type { BalanceId, KeyId } from "../../src/units/id.ts";
import { MAX_NANO_USD, type NanoUsd, ZERO_USD } from "../../src/units/usd.ts";
import { ManualClock } from "../fakes/clock.ts";
import { KnownHolders } from "../fakes/holders.ts";
import { keyOf } from "../fakes/key.ts";
import { reservationEnd, reservationRequest } from "../fakes/reservation.ts";
import { FleetAuthority } from "../sim/fleet-authority.ts";

const KEY = keyOf({ id: "key_a" as KeyId, balanceId: "bal_a" as BalanceId, dailyLimit: 1_000 as NanoUsd });

test("a stream that outgrows its hold goes on with what a request at another node held and did not use", async () => {
  const fleet = new Fleet();
  const [here, there] = [fleet.node("here"), fleet.node("there")];
  const other = await fleet.admit(there, 900);
  const stream = await fleet.admit(here, 100);
  expect(here.extend(stream, 50 as NanoUsd)).toBe(false);
  await fleet.pass(10_000);
  expect(here.extend(stream, 50 as NanoUsd)).toBe(false);
  there.settle(other, reservationEnd(10), () => "{}");
  // It tries again with each piece of the answer, long before it needs more.
  let pieces = 1;
  while (!here.extend(stream, 50 as NanoUsd)) {
    expect(pieces++).toBeLessThan(20);
    await fleet.pass(50);
  }
});

class Fleet {
  private readonly clock = new ManualClock();
  private readonly nodes = new Map<string, Grants>();
  private readonly authority = new FleetAuthority((counter, asker, inquiry) => {
    for (const [name, grants] of this.nodes)
      if (name !== asker) queueMicrotask(() => grants.recall(counter, inquiry));
  });
  private readonly holders = new KnownHolders();

  constructor() {
    this.authority.credit(balanceCounter(KEY.balanceId), 1_000_000 as NanoUsd);
  }

  node(name: string): Ledger {
    const grants: Grants = new Grants(name, 1, this.clock, (statement) => {
      queueMicrotask(() => grants.receive(this.authority.settle(statement)!));
    });
    this.nodes.set(name, grants);
    const journal = { append: () => 0, withdraw: () => false };
    const sums = { spent: () => ZERO_USD, credited: () => MAX_NANO_USD };
    return new Ledger(this.clock, journal, sums, this.holders, grants);
  }

  async admit(ledger: Ledger, amount: number): Promise<Reservation> {
    const most = { amount: 1_000 as NanoUsd, tokens: 0 };
    const request = reservationRequest({ at: this.clock.now(), key: KEY, amount, most });
    this.holders.put(KEY);
    const keyCounters = await ledger.counters.of(KEY, [], [], request.at);
    const claim = new GrantClaim();
    const admission = ledger.replenish(keyCounters, request, claim)!.then(() => {
      const admitted = ledger.admit(keyCounters, request);
      claim.release();
      return admitted;
    });
    await this.pass(500);
    expect(await admission).toBeInstanceOf(Reservation);
    return (await admission) as Reservation;
  }

  async pass(ms: number): Promise<void> {
    for (let passed = 0; passed < ms; passed += 50) {
      this.clock.advance(50);
      if (this.clock.elapsedMs() % 250 === 0) for (const grants of this.nodes.values()) grants.tick();
      await Bun.sleep(0);
    }
  }
}
