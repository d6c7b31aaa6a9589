import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { BookkeepingParts } from "../../src/bookkeeping.ts";
import { openSqliteBooks } from "../../src/bookkeeping-sqlite.ts";
import { Reservation, type Want } from "../../src/ledger/reservation.ts";
import { openDataFolder } from "../../src/store/data-folder.ts";
import { systemClock } from "../../src/units/clock.ts";
import { systemRandom } from "../../src/units/random.ts";
import type { NanoUsd } from "../../src/units/usd.ts";
import { keyOf } from "../fakes/key.ts";

const CENT = 10_000_000 as NanoUsd;

test("an end that is not on the disk yet is no drift to an audit", async () => {
  const path = mkdtempSync(join(tmpdir(), "audit-"));
  const books = await openSqliteBooks({
    config: { durability: "strict", generation: { writeOffTokens: 50 } },
    folder: openDataFolder(path, "token", systemRandom),
    clock: systemClock,
    log() {},
  } as unknown as BookkeepingParts);
  const key = keyOf();
  const at = systemClock.now();
  const credit = { balanceId: key.balanceId, amount: CENT, idempotencyKey: "one", note: null, at };
  await books.credit(credit);
  const { ledger, journal } = books;
  const want = {
    receipt: "rcpt_1",
    at,
    key,
    budgets: [],
    allowances: [],
    amount: CENT,
    about: { stream: true },
  };
  const reservation = ledger.admit(await ledger.lane(key, [], [], at), want as unknown as Want);
  if (!(reservation instanceof Reservation)) throw new Error("was not admitted");

  // Both wait for the hold; the request goes on first, and ends.
  const ending = {
    state: "settled",
    cost: CENT,
    writeOff: false,
    rateTokens: 0,
    allowanceUsed: true,
  } as const;
  const ended = Promise.resolve(journal.durable(reservation.sequence)).then(() =>
    ledger.settle(reservation, ending, () => "{}"),
  );
  expect((await books.audit()).drifts).toEqual([]);
  await ended;
  expect(await books.audit()).toMatchObject({ charges: BigInt(CENT), drifts: [] });
  await books.close();
  rmSync(path, { recursive: true, force: true });
});
