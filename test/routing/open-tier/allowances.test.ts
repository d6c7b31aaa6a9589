import { expect, test } from "bun:test";
import { Ledger } from "../../../src/ledger/ledger.ts";
import { Reservation } from "../../../src/ledger/reservation.ts";
import { allowancesOf, pseudonyms } from "../../../src/routing/open-tier/open-tier.ts";
import type { AccountId, BalanceId } from "../../../src/units/id.ts";
import { ZERO_USD } from "../../../src/units/usd.ts";
import { ManualClock } from "../../fakes/clock.ts";
import { KnownHolders } from "../../fakes/holders.ts";
import { keyOf } from "../../fakes/key.ts";
import { reservationRequest } from "../../fakes/reservation.ts";

/**
 * The real ledger; the day has just started, and nothing is settled, so that every request in flight counts.
 */
class World {
  readonly clock = new ManualClock();
  private readonly pseudonym = pseudonyms("a secret of the operator");
  private sequence = 0;
  private readonly holders = new KnownHolders();
  private readonly ledger = new Ledger(
    this.clock,
    { append: () => ++this.sequence, withdraw: () => false },
    { spent: () => ZERO_USD, credited: () => ZERO_USD },
    this.holders,
  );

  /** One free request of a key of its own; whether it was admitted. */
  async request(balance: string, blocks: readonly string[], account: string | null = null): Promise<boolean> {
    const id = `bal_${balance}` as BalanceId;
    const accountId = account === null ? null : (`acct_${account}` as AccountId);
    const allowances = allowancesOf({ id, accountId }, blocks, LIMITS, this.pseudonym);
    this.sequence += 1;
    const key = keyOf({
      balanceId: id,
      id: `key_${balance}${this.sequence}`,
      rotationId: `key_${balance}${this.sequence}`,
    });
    this.holders.put(key);
    const at = this.clock.now();
    const keyCounters = await this.ledger.counters.of(key, [], allowances, at);
    const request = reservationRequest({ at, key, allowances, amount: 0, rateTokens: 10 });
    const outcome = this.ledger.admit(keyCounters, request);
    return outcome instanceof Reservation;
  }

  async admitted(asks: number, request: (index: number) => Promise<boolean>): Promise<number> {
    const outcomes = await Promise.all(Array.from({ length: asks }, (_, index) => request(index)));
    return outcomes.filter(Boolean).length;
  }
}

const LIMITS = { requestsPerDay: 50, accountlessRequestsPerDay: 20, rpm: null };

test("10,000 keys without an account in one address block get one allowance together", async () => {
  const world = new World();
  expect(await world.admitted(10_000, (index) => world.request(`b${index}`, ["203.0.113.9"]))).toBe(20);
});

test("a balance keeps its one allowance wherever its keys are used", async () => {
  const world = new World();
  expect(await world.admitted(1_000, (index) => world.request("b", [`203.0.113.${index % 250}`]))).toBe(20);
});

test("all keys of an account share its allowance, and its network does not matter", async () => {
  const world = new World();
  expect(await world.admitted(20, (index) => world.request(`b${index}`, ["203.0.113.9"]))).toBe(20);
  expect(await world.admitted(1_000, (index) => world.request(`c${index}`, ["203.0.113.9"], "one"))).toBe(50);
});

test("a subscriber with 65,536 IPv6 blocks gets sixteen allowances, not 65,536", async () => {
  const world = new World();
  const admitted = await world.admitted(10_000, (index) =>
    world.request(`b${index}`, [`2001:db8:1:${index.toString(16)}::/64`, "2001:db8:1::/48"]),
  );
  expect(admitted).toBe(320);
});

test("the allowance is whole again at 00:00 UTC", async () => {
  const world = new World();
  const request = (index: number) => world.request(`b${index}`, ["203.0.113.9"]);
  expect(await world.admitted(30, request)).toBe(20);
  world.clock.advance(24 * 3_600_000 - 1);
  expect(await world.admitted(30, request)).toBe(0);
  world.clock.advance(1);
  expect(await world.admitted(30, request)).toBe(20);
});

test("what the ledger keeps of an address tells nobody the address", () => {
  const [, block] = allowancesOf(
    { id: "bal_b", accountId: null },
    ["203.0.113.9"],
    LIMITS,
    pseudonyms("secret"),
  );
  expect(block!.owner).toMatch(/^block_[0-9a-f]{24}$/);
  const other = pseudonyms("another secret")("203.0.113.9");
  expect(block!.owner).not.toBe(`block_${other}`);
});
