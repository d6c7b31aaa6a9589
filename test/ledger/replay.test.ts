import { expect, test } from "bun:test";
import { FAILED_STATES, type HoldRecord, type LedgerRecord } from "../../src/ledger/record.ts";
import { Replay } from "../../src/ledger/recovery.ts";
import type { ReceiptId } from "../../src/units/id.ts";
import type { NanoUsd } from "../../src/units/usd.ts";

const ID = "rcpt_1" as ReceiptId;
const hold = (amount: number): HoldRecord => ({ kind: "hold", receipt: ID, amount }) as unknown as HoldRecord;
const extend = (held: number): LedgerRecord => ({ kind: "extend", receipt: ID, held: held as NanoUsd });
const delivered = (tokens: number): LedgerRecord => ({ kind: "delivered", tokens: [[ID, tokens]] });
const terminal = { kind: "terminal", receipt: ID } as LedgerRecord;

test.each<[string, LedgerRecord[], { held: number; delivered: number } | null]>([
  ["a hold", [hold(10)], { held: 10, delivered: 0 }],
  ["one that grew and delivered", [hold(10), extend(30), delivered(7)], { held: 30, delivered: 7 }],
  ["one written again in a new file", [hold(10), delivered(7), hold(20)], { held: 20, delivered: 7 }],
  ["one that ended", [hold(10), terminal], null],
  ["what is left of one that ended before", [extend(30), delivered(7)], null],
])("open after a crash: %s", (_, records, open) => {
  const replay = new Replay();
  for (const record of records) replay.add(record);
  const orphan = replay.orphans.get(ID);
  expect(orphan === undefined ? null : { held: orphan.held as number, delivered: orphan.delivered }).toEqual(
    open,
  );
});

test("an end is a failure where the gateway or a host failed, not where a client left", () => {
  expect(FAILED_STATES).toEqual(["written_off", "failed", "recovered"]);
});
