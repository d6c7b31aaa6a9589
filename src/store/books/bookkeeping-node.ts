import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { Keyring } from "../../customers/keys/keyring.ts";
import { Runs } from "../../customers/keys/runs.ts";
import type { Statement } from "../../ledger/authority.ts";
import { balanceTotals } from "../../ledger/balance-view.ts";
import { balanceCounter, type CounterId, runOfCounter } from "../../ledger/counter.ts";
import type { Credit, Debit, TooMuch } from "../../ledger/credit.ts";
import { Grants, onceDurable } from "../../ledger/grants.ts";
import { Ledger } from "../../ledger/ledger.ts";
import { EpochFenced, type KeyringChange, NodeLease } from "../../ledger/node-lease.ts";
import type { RemoteRoute } from "../../routing/affinity.ts";
import { type Clock, epochMs, HOUR_MS, pause } from "../../units/clock.ts";
import type { Figure } from "../../units/figure.ts";
import { isLaterThan } from "../../units/id.ts";
import type { Log } from "../../units/log.ts";
import { Rounds } from "../../units/rounds.ts";
import { MAX_NANO_USD, ZERO_USD } from "../../units/usd.ts";
import { type EndStore, JournalBooks, NODE_PACE } from "../journal/books.ts";
import { PeriodicTimers } from "../journal/periodic-timers.ts";
import { ClaimRounds, lostToClaims } from "../ledger/credits.ts";
import type { NodeAuthority } from "../ledger/grants.ts";
import { FleetHolds } from "../nodes/fleet-holds.ts";
import type { FollowingBooks, NodeStore } from "../nodes/node-store.ts";
import { bookedReads } from "./booked-reads.ts";
import { type Bookkeeping, type BookkeepingParts, journalOptions } from "./bookkeeping.ts";

/** One of many processes: it spends from grants, under a lease, and ships its ends to the store that they share. */
// biome-ignore lint/complexity/noExcessiveLinesPerFunction: a table: what a node keeps, and where.
export async function openNodeBooks(parts: BookkeepingParts, store: NodeStore): Promise<Bookkeeping> {
  const { clock, log, folder } = parts;
  const name = folder.nodeName();
  const books = await store.openBooks(parts, name);
  const node = await joinStore(parts, store, books, name);
  const { keys, accounts, keyring, runs, ledger, lease, grants } = node;
  books.follow(ledger, lease.epoch, (counters) => {
    store.authority.retire(name, counters).catch((error) => log("grants", { error: String(error) }));
  });
  await lease.follow();
  const timers = new PeriodicTimers(clock, (error) => log("grants", { error: String(error) }));
  timers.every(TICK_MS, () => grants.tick());
  timers.every(RETURN_IDLE_MS, () => grants.returnIdle());
  const answering = answerInquiries(store.authority, name, grants, clock);
  const stopLooking = store.serveOthers(() => lease.usable());
  const claims = new ClaimRounds(store.ledger, clock, log);
  const holds = new FleetHolds({
    node: name,
    exchange: store.held,
    grants: store.ledger,
    ledger,
    books,
    clock,
  });
  let takeRoutes: (routes: readonly RemoteRoute[]) => void = () => {};
  store.listen((notice) => {
    if (notice.kind === "changed") void lease.hurry();
    else if (notice.kind === "held") {
      if ("counters" in notice.message) void holds.handleQuestion(notice.message);
      else holds.handleAnswer(notice.message);
    } else if (notice.kind === "conversations") {
      if (notice.node !== name) takeRoutes(notice.routes);
    } else if (notice.asker !== name) grants.recall(notice.inquiry.counter, notice.inquiry.inquiry);
  });
  const { stop, ...reads } = bookedReads({
    store: store.ledger,
    books,
    ledger,
    path: store.usagePath,
    booked: () => books.catchUp(),
    async known() {
      // What was shipped in this epoch is what this process has spent.
      const shipped = await store.ledger.shipped(name);
      return (id) => shipped.get(id) ?? 0;
    },
  });
  log("node", { name, epoch: lease.epoch });

  return {
    ...store.stores,
    ...reads,
    ...shippedReads(parts, store, books),
    held: (id) => holds.of(id),
    ledger,
    keys,
    accounts,
    keyring,
    runs,
    journal: books.journal,
    nodes: store.registry,
    node: name,
    ...(store.notifyConversations === undefined
      ? {}
      : {
          notices: {
            send: (routes) => store.notifyConversations!(name, routes),
            listen: (take) => {
              takeRoutes = take;
            },
          },
        }),
    healthy: () => books.journal.healthy && lease.usable(),
    credit: (credit) => store.ledger.credit(credit),
    debit: (debit) => debitAmongNodes(debit, store, lease),
    fold: (before) => store.ledger.fold(before),
    // A refusal by the store becomes `StoreUnreachable`.
    diskRefused: () => false,
    figures: () => [...nodeFigures(grants, books, lease), lostToClaims(claims.lost)],
    async close() {
      await claims.stop();
      timers.stop();
      void answering.stop();
      stopLooking();
      // The epoch of a node that could not ship everything stays open: its next life ships the rest and
      // closes it.
      if (await books.close()) {
        await lease.leave().catch((error) => log("lease", { error: String(error) }));
      } else await lease.stop();
      stop();
      await store.close();
    },
  };
}

/** A known amount is taken of what no node was granted, if that is enough: then none of them is asked. */
async function debitAmongNodes(
  debit: Debit,
  { ledger, registry }: NodeStore,
  lease: NodeLease,
): Promise<Credit | TooMuch> {
  const { balanceId, idempotencyKey, amount } = debit;
  const recall = async () =>
    lease.acknowledged(await registry.recall(balanceId, [balanceCounter(balanceId)]));
  const done = typeof amount === "number" ? await ledger.debit(debit) : await ledger.entry(idempotencyKey);
  const isKnown = done !== null && !("available" in done);
  // What nodes were granted and do not use comes back before more is taken, or all.
  if (!isKnown) await recall();
  const entry = isKnown ? done : await ledger.debit(debit);
  // Until then, nodes spend what their requests give back. One that is repeated may have been cut off here.
  if ("claimed" in entry && entry.claimed! > 0) await recall();
  return entry;
}

/** The journal of a node that has a disk. */
export async function journalBooks(parts: BookkeepingParts, store: EndStore): Promise<JournalBooks> {
  const path = journalFolder(parts.folder);
  mkdirSync(path, { recursive: true, mode: 0o700 });
  return JournalBooks.open({ ...journalOptions(parts, path), store, pace: NODE_PACE });
}

/** Apart from the files of a gateway on SQLite: ends that are in one store must not be shipped to the other. */
export const journalFolder = ({ path }: BookkeepingParts["folder"]): string => join(path, "node");

/** Begins the node's epoch, in which nothing is used before its lease is renewed for the first time. */
async function joinStore(
  { clock, log, onLost }: BookkeepingParts,
  store: NodeStore,
  books: FollowingBooks,
  name: string,
) {
  const keys = store.keys((version) => lease.acknowledged(version));
  const accounts = store.accounts((version) => lease.acknowledged(version));
  const keyring = new Keyring(
    keys,
    undefined,
    () => lease.usable(),
    (concerns) => ledger.recheck(concerns),
  );
  const runs = new Runs(keys);
  const life = await store.join(name);
  const lease: NodeLease = new NodeLease(store.registry, clock, name, life, {
    async changed(changes) {
      forget(keyring, runs, changes);
      const lower = changes.flatMap(({ counters }) => counters);
      // What was granted under the old limits goes back before the change counts as noticed.
      if (lower.length > 0 && !(await grants.release(lower)))
        throw new Error("grants could not be given back");
    },
    lapsed() {
      keyring.forgetAll();
      runs.forgetAll();
    },
    failed(error) {
      log("lease", { error: String(error) });
      if (error instanceof EpochFenced) onLost(error);
    },
  });
  const send = statementsTo(store.authority, books.journal, () => grants, log);
  const grants: Grants = new Grants(name, lease.epoch, clock, send, () => lease.usable());
  const sums = { spent: () => ZERO_USD, credited: () => MAX_NANO_USD };
  const ledger: Ledger = new Ledger(clock, books.journal, sums, keyring, grants);
  return { keys, accounts, keyring, runs, lease, grants, ledger };
}

function forget(keyring: Keyring, runs: Runs, changes: readonly KeyringChange[]): void {
  const keys = changes.flatMap(({ key }) => (key === null ? [] : [{ hash: key }]));
  const balances = changes.flatMap(({ balance }) => balance ?? []);
  if (balances.length < changes.length) {
    keyring.forgetAll();
    runs.forgetAll();
    return;
  }
  keyring.forget(keys, balances);
  for (const counter of changes.flatMap(({ counters }) => counters)) {
    const run = runOfCounter(counter as CounterId);
    if (run !== null) runs.changed(run);
  }
}

/** As the store has them, with what this node has ended; others ship theirs. */
function shippedReads(
  { clock }: BookkeepingParts,
  { ledger }: NodeStore,
  books: FollowingBooks,
): Pick<Bookkeeping, "balance" | "spent" | "receipt"> {
  return {
    async balance(id) {
      await books.catchUp();
      const { credited, spent } = await ledger.balance(id);
      return balanceTotals(credited, spent);
    },
    async spent(id) {
      await books.catchUp();
      return ledger.spent(id);
    },
    async receipt(id, patient = true) {
      await books.catchUp();
      const found = await ledger.receipt(id);
      const isYoung = isLaterThan(epochMs(clock.now() - LONGEST_REQUEST_MS), id);
      if (found !== null || !patient || !isYoung) return found;
      // It may have ended at another node a moment ago, and be on its way from that one's journal.
      await pause(clock, SHIPPED_MS);
      return ledger.receipt(id);
    },
  };
}

/** Nodes ship each 200 ms. */
const SHIPPED_MS = 300;
const LONGEST_REQUEST_MS = HOUR_MS;

/** Sends a ledger's statements once they are durable, and tells its grants what comes of them. */
function statementsTo(
  authority: NodeAuthority,
  journal: FollowingBooks["journal"],
  grants: () => Grants,
  log: Log,
): (statement: Statement) => void {
  let lastLogged: unknown = null;
  // The statements of a batch fail together, and are logged once.
  const failed = (error: unknown): void => {
    if (error !== lastLogged) log("grants", { error: String(error) });
    lastLogged = error;
  };
  const settle = async (statement: Statement) => grants().receive(await authority.settle(statement));
  return onceDurable(journal, (statement) => void settle(statement).catch(failed));
}

/** Finds the inquiries that no announcement named. */
const answerInquiries = (authority: NodeAuthority, node: string, grants: Grants, clock: Clock): Rounds =>
  new Rounds(clock, POLL_MS, async () => {
    // An unreachable store is reported elsewhere.
    const found = await authority.inquiries(node).catch(() => []);
    for (const { counter, inquiry } of found) grants.recall(counter, inquiry);
  });

const TICK_MS = 250;
const POLL_MS = 1_000;
const RETURN_IDLE_MS = 10_000;

/** What the metrics tell of a node. */
export function nodeFigures(
  grants: Grants,
  { journal, shipped, batches }: FollowingBooks,
  node: NodeLease,
): Figure[] {
  const { counters, granted, stranded, statements, recalls } = grants.figures;
  return [
    {
      name: "gateway_lease_seconds",
      help: "Seconds left of this node's lease on keys and grants.",
      value: node.leaseLeftMs / 1_000,
      together: "least",
    },
    { name: "gateway_grant_counters", help: "Counters that this node holds a grant of.", value: counters },
    {
      name: "gateway_granted_usd",
      help: "USD of balances granted to this node in this epoch.",
      value: granted / 1e9,
    },
    {
      name: "gateway_stranded_usd",
      help: "USD of gateway_granted_usd that is neither spent nor held.",
      value: stranded / 1e9,
    },
    {
      name: "gateway_grant_statements",
      help: "Statements for grants, since start.",
      value: statements,
      type: "counter",
    },
    {
      name: "gateway_grant_recalls",
      help: "Times that other nodes ran short of what this node held.",
      value: recalls,
      type: "counter",
    },
    {
      name: "gateway_ship_lag",
      help: "Ended requests that are durable in the journal and not yet in the shared store.",
      value: journal.unappliedCount,
    },
    {
      name: "gateway_shipped_ends",
      help: "Ended requests shipped to the shared store since start.",
      value: shipped,
      type: "counter",
    },
    {
      name: "gateway_shipped_batches",
      help: "Transactions that gateway_shipped_ends took.",
      value: batches,
      type: "counter",
    },
  ];
}
