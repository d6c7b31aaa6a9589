import { type CounterId, isBalanceCounter } from "../../ledger/counter.ts";
import { EpochFenced } from "../../ledger/node-lease.ts";
import type { TerminalRecord } from "../../ledger/record.ts";
import type { EpochMs } from "../../units/clock.ts";
import type { ReceiptId } from "../../units/id.ts";
import {
  CHARGES_TAKEN,
  type ChargedCounter,
  chargedCounters,
  recordingCharges,
} from "../customers/events.ts";
import {
  type Database,
  EachRow,
  flattened,
  type SqlPart,
  type Steps,
  sql,
  verbatim,
} from "../database/database.ts";
import { fileOffsets, type Unapplied } from "../journal/journal.ts";

/**
 * Books ends once: one whose receipt is there changes nothing. A node's charges leave what it was granted and enter what is
 * spent, so no counter's sum moves. Unlike grants, ends may still be booked for an epoch that was closed: they happened.
 */
export function* booking(db: Database, { node, epoch, ends, at, also = [] }: Booking): Steps<void> {
  const [lives, takers, inserted] = yield [
    // The lock is the fence; and by it a commit waits for a synchronous replica even where everything else is there already,
    // by a commit that was not answered.
    sql`SELECT epoch FROM nodes WHERE name = ${node} ${db.forReference}`,
    sql`SELECT 1 WHERE ${CHARGES_TAKEN}`,
    new EachRow(END_COLUMNS, ends.map(rowOf), inserting, true),
    ...also,
  ];
  const [life] = lives as readonly { readonly epoch: number }[];
  if (epoch !== null && life?.epoch !== epoch) throw new EpochFenced(`epoch ${epoch} of ${node} is over`);
  const receipts = new Set((inserted as readonly { receipt: ReceiptId }[]).map(({ receipt }) => receipt));
  // Each once: deleted as it is found.
  const fresh = ends.filter(({ receipt }) => receipts.delete(receipt));
  const spent = new Map<CounterId, number>();
  for (const end of fresh) addSpending(spent, end);
  if (spent.size === 0) return;
  const query = takers!.length === 0 ? null : chargedCounters(db, spent, fresh);
  // The query reads the sums that those before it have written.
  const charged = (yield [...charging(node, spent), ...(query === null ? [] : [query])]).at(-1);
  if (query !== null) yield flattened(recordingCharges(db, charged as readonly ChargedCounter[], fresh, at));
}

export interface Booking {
  /** Null for a process that has all of the ledger. */
  readonly node: string | null;
  /** Throws EpochFenced where the node is in another one; null for any. */
  readonly epoch: number | null;
  readonly ends: readonly TerminalRecord[];
  readonly at: EpochMs;
  /** Written in the same transaction. */
  readonly also?: readonly SqlPart[];
}

/**
 * Books a batch of a journal, with the place up to which the journal is then booked. What is below that place is not booked
 * again although its receipt may be deleted by now.
 */
export function* shipping(
  db: Database,
  { batch, ...booked }: Omit<Booking, "ends" | "also"> & { readonly batch: readonly Unapplied[] },
): Steps<void> {
  const { node } = booked;
  const [rows] = node === null ? [[]] : yield [reachedFiles(node)];
  const reached = reachedFrom(rows as readonly ReachedFile[]);
  const ends = batch.flatMap(({ record, file, bytes }) => (bytes > (reached.get(file) ?? -1) ? record : []));
  const also = [...fileOffsets(batch)].map(([file, bytes]) =>
    node === null
      ? sql`INSERT INTO applied (file, bytes) VALUES (${file}, ${bytes})
          ON CONFLICT (file) DO UPDATE SET bytes = excluded.bytes WHERE applied.bytes < excluded.bytes`
      : sql`INSERT INTO shipped (node, file, bytes) VALUES (${node}, ${file}, ${bytes})
          ON CONFLICT (node, file) DO UPDATE SET bytes = excluded.bytes WHERE shipped.bytes < excluded.bytes`,
  );
  yield* booking(db, { ...booked, ends, also });
}

/** How far each file of a journal is booked, in bytes. */
export const reachedFiles = (node: string | null): SqlPart => sql`SELECT file, bytes FROM ${offsetsIn(node)}`;

export const reachedFrom = (rows: readonly ReachedFile[]): Map<number, number> =>
  new Map(rows.map(({ file, bytes }) => [file, bytes]));

/** Forgets the offsets of files that are gone. */
export const forgettingFiles = (node: string | null, before: number): SqlPart =>
  sql`DELETE FROM ${offsetsIn(node)} AND file < ${before}`;

const offsetsIn = (node: string | null): SqlPart =>
  node === null ? sql`applied WHERE true` : sql`shipped WHERE node = ${node}`;

export interface ReachedFile {
  readonly file: number;
  readonly bytes: number;
}

function charging(node: string | null, spent: ReadonlyMap<CounterId, number>): EachRow[] {
  const each = (write: EachRow["write"]) => new EachRow({ id: "TEXT", amount: "BIGINT" }, [...spent], write);
  // First, because it locks them.
  const spending = each(
    ({ source }) => sql`INSERT INTO counters (id, spent) ${source}
      ON CONFLICT (id) DO UPDATE SET spent = counters.spent + excluded.spent`,
  );
  if (node === null) return [spending];
  return [
    spending,
    each(
      ({ from, cell }) => sql`UPDATE counters SET reserved = reserved - ${cell("amount")} ${from}
        WHERE counters.id = ${cell("id")}
          AND EXISTS (SELECT 1 FROM grants WHERE node = ${node} AND counter = counters.id)`,
    ),
    each(
      ({ from, cell }) => sql`UPDATE grants SET shipped = shipped + ${cell("amount")} ${from}
        WHERE counter = ${cell("id")} AND node = ${node}`,
    ),
  ];
}

/** Adds what an end comes to, in nano-dollars and in requests of allowances. */
export function addSpending(
  spent: Map<CounterId, number>,
  { charged, counters, parts = [], allowances }: TerminalRecord,
): void {
  const add = (counter: CounterId, amount: number) => spent.set(counter, (spent.get(counter) ?? 0) + amount);
  if (charged > 0) for (const counter of counters) add(counter, charged);
  for (const [counter, part] of parts) add(counter, part);
  for (const counter of allowances) add(counter, 1);
}

/** In the order of `END_COLUMNS`. */
const rowOf = (end: TerminalRecord) => [
  end.receipt,
  end.at,
  end.balance,
  end.key,
  end.state,
  end.charged,
  end.writtenOff,
  end.lost,
  countersColumn(end),
  end.allowances.join(" "),
  end.body,
  end.hostCost ?? null,
];

const END_COLUMNS = {
  receipt: "TEXT",
  at: "BIGINT",
  balance_id: "TEXT",
  key_id: "TEXT",
  state: "TEXT",
  charged: "BIGINT",
  written_off: "BIGINT",
  lost: "BIGINT",
  counters: "TEXT",
  allowances: "TEXT",
  body: "TEXT",
  host_cost: "BIGINT",
} as const;

const inserting: EachRow["write"] = ({ source }) =>
  sql`INSERT INTO ends (${verbatim(Object.keys(END_COLUMNS).join(", "))}) ${source} ON CONFLICT (receipt) DO NOTHING`;

/** The column `counters` of an end. The balance is a column of its own. */
function countersColumn({ counters, parts = [] }: TerminalRecord): string {
  let column = "";
  for (const counter of counters) {
    if (!isBalanceCounter(counter)) column = column === "" ? counter : `${column} ${counter}`;
  }
  for (const [counter, charged] of parts) column += ` ${counter}=${charged}`;
  return column;
}
