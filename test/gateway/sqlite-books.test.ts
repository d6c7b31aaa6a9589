import { Database } from "bun:sqlite";
import { afterEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Reservation } from "../../src/ledger/reservation.ts";
import type { BookkeepingParts } from "../../src/store/books/bookkeeping.ts";
import { openSqliteBooks } from "../../src/store/books/bookkeeping-sqlite.ts";
import { openDataFolder } from "../../src/store/data-folder.ts";
import { systemClock } from "../../src/units/clock.ts";
import type { ReceiptId } from "../../src/units/id.ts";
import { systemRandom } from "../../src/units/random.ts";
import { hashSecret } from "../../src/units/secret-hash.ts";
import type { NanoUsd } from "../../src/units/usd.ts";
import { balanceOf } from "../fakes/balance.ts";
import { keyOf } from "../fakes/key.ts";
import { reservationEnd, reservationRequest } from "../fakes/reservation.ts";

const CENT = 10_000_000 as NanoUsd;
const SECRET = "or-live-123456789ABCDEFGHJKLMNPQRSTUVWXY";
const RECEIPT = "rcpt_1" as ReceiptId;

let close = async () => {};
afterEach(() => close());

/** Books in a folder of their own, with one request of a cent admitted, which `settle` ends. */
async function opened() {
  const path = mkdtempSync(join(tmpdir(), "sqlite-books-"));
  const books = await openSqliteBooks({
    config: { durability: "strict", generation: { writeOffTokens: 50 } },
    folder: openDataFolder(path, "test-admin-token", systemRandom),
    clock: systemClock,
    log() {},
  } as unknown as BookkeepingParts);
  close = async () => {
    await books.close();
    rmSync(path, { recursive: true, force: true });
  };
  const stored = keyOf({ hash: hashSecret(SECRET) });
  const at = systemClock.now();
  const { balanceId: id, rotationId: setUpKey } = stored;
  await books.keys.addBalance(balanceOf({ id, createdAt: at, setUpKey }), stored);
  // A request is admitted by its key as it is known then.
  const { key } = (await books.keyring.identify(SECRET, at))!;
  await books.credit({ balanceId: key.balanceId, amount: CENT, idempotencyKey: "one", note: null, at });
  const { ledger } = books;
  const request = reservationRequest({ receipt: RECEIPT, at, key, amount: CENT });
  const reservation = ledger.admit(await ledger.counters.of(key, [], [], at), request);
  if (!(reservation instanceof Reservation)) throw new Error("was not admitted");
  const settle = () => ledger.settle(reservation, reservationEnd(CENT, { allowanceUsed: true }), () => "{}");
  return { path, books, reservation, settle };
}

test("an end that is not on the disk yet is no drift to an audit", async () => {
  const { books, reservation, settle } = await opened();
  // Both wait for the hold; the request goes on first, and ends.
  const ended = Promise.resolve(books.journal.durable(reservation.sequence)).then(settle);
  expect((await books.audit()).drifts).toEqual([]);
  await ended;
  expect(await books.audit()).toMatchObject({ charges: BigInt(CENT), drifts: [] });
});

test("a receipt is there as soon as its request has ended, although nobody waits for the disk", async () => {
  const { books, reservation, settle } = await opened();
  await books.journal.durable(reservation.sequence);
  settle();
  expect(await books.receipt(RECEIPT)).toMatchObject({ id: RECEIPT });
});

test("a receipt that the database refuses is found, and is the same once it has been taken", async () => {
  const { path, books, reservation, settle } = await opened();
  const database = new Database(join(path, "gateway.sqlite"));
  database.run("CREATE TRIGGER full BEFORE INSERT ON ends BEGIN SELECT RAISE(ABORT, 'disk is full'); END");
  await books.journal.durable(reservation.sequence);
  settle();
  const refused = await books.receipt(RECEIPT);
  expect(refused).toMatchObject({ id: RECEIPT, balanceId: keyOf().balanceId, body: "{}" });
  expect(books.journal.unappliedCount).toBe(1);
  database.run("DROP TRIGGER full");
  database.close();
  expect(await books.receipt(RECEIPT)).toEqual(refused);
  expect(books.journal.unappliedCount).toBe(0);
});
