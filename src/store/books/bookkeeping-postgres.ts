import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { Keyring } from "../../keys/keyring.ts";
import type { Statement } from "../../ledger/authority.ts";
import { balanceCounter, type CounterId } from "../../ledger/counter.ts";
import { Grants, onceDurable } from "../../ledger/grants.ts";
import { Ledger } from "../../ledger/ledger.ts";
import { EpochFenced, Membership, type MembershipChange } from "../../ledger/membership.ts";
import { recoveredReceipt } from "../../ledger/receipt.ts";
import { recoveredEnd } from "../../ledger/recovery.ts";
import { type Clock, epochMs, pause } from "../../units/clock.ts";
import type { Figure } from "../../units/figure.ts";
import { isLaterThan } from "../../units/id.ts";
import type { Log } from "../../units/log.ts";
import { Rounds } from "../../units/rounds.ts";
import { MAX_NANO_USD, type NanoUsd, ZERO_USD } from "../../units/usd.ts";
import { PostgresAccountStore } from "../postgres/account-store.ts";
import { PostgresAuthority, RECALLS } from "../postgres/authority.ts";
import { PostgresBooks } from "../postgres/books.ts";
import { DisklessBooks } from "../postgres/diskless-books.ts";
import { closeGoneNodes } from "../postgres/gone-nodes.ts";
import { PostgresHolds } from "../postgres/holds.ts";
import { PostgresKeyStore } from "../postgres/key-store.ts";
import { PostgresLedgerStore } from "../postgres/ledger-store.ts";
import { PostgresLowCreditStore } from "../postgres/low-credit-store.ts";
import { migratePostgres, Postgres } from "../postgres/postgres.ts";
import { CHANGES, PostgresRegistry } from "../postgres/registry.ts";
import { PostgresSigningKeyStore } from "../postgres/signing-key-store.ts";
import type { StoreConfig } from "../store-config.ts";
import { MOST_CHARTS, MOST_SPENDINGS, UsageReader } from "../usage.ts";
import { type Bookkeeping, type BookkeepingParts, journalOptions, withMemory } from "./bookkeeping.ts";

/** One of many processes: its journal in the data folder or in PostgreSQL, everything else in PostgreSQL. */
export async function openPostgresBooks(
  parts: BookkeepingParts,
  { url, journal }: PostgresPlace,
): Promise<Bookkeeping> {
  const { config, folder, clock, log, onLost } = parts;
  const postgres = new Postgres({ url, connections: CONNECTIONS, deadlineMs: DEADLINE_MS }, clock);
  await migratePostgres(postgres);
  const registry = new PostgresRegistry(postgres, (orphan) =>
    recoveredEnd(orphan, config.generation.writeOffTokens, recoveredReceipt),
  );
  const store = new PostgresLedgerStore(postgres);
  const authority = new PostgresAuthority(postgres);
  const name = folder.nodeName();
  const books =
    journal === "postgres"
      ? disklessBooks(parts, new PostgresHolds(postgres), name)
      : await journalBooks(parts, store, name, await registry.lastEpoch(name));

  const keys = new PostgresKeyStore(postgres, clock, (version) => node.acknowledged(version));
  const keyring = new Keyring(
    keys,
    undefined,
    () => node.usable(),
    (concerns) => ledger.lookAgain(concerns),
  );
  const node: Membership = new Membership(registry, clock, name, await registry.join(name, journal), {
    async changed(changes) {
      forget(keyring, changes);
      const lower = changes.flatMap(({ counters }) => counters);
      // What was granted under the old limits goes back before the change counts as noticed.
      if (lower.length > 0 && !(await grants.release(lower)))
        throw new Error("grants could not be given back");
    },
    lapsed: () => keyring.forgetAll(),
    failed(error) {
      log("lease", { error: String(error) });
      if (error instanceof EpochFenced) onLost(error);
    },
  });
  const send = statementsTo(authority, books.journal, () => grants, log);
  const grants: Grants = new Grants(name, node.epoch, clock, send, () => node.usable());
  const sums = { spent: () => ZERO_USD, credited: () => MAX_NANO_USD };
  const ledger: Ledger = new Ledger(clock, books.journal, sums, keyring, grants);
  books.follow(ledger, node.epoch, (counters) => {
    authority.retire(name, counters).catch((error) => log("grants", { error: String(error) }));
  });
  await node.follow();
  const stopTending = tend(grants, clock);
  const answering = answerInquiries(authority, name, grants, clock);
  const stopClosing = closeGoneNodes({ registry, usable: () => node.usable(), clock, log });
  postgres.listen({
    [CHANGES]: () => void node.hurry(),
    [RECALLS]: (payload) => {
      const [asker, counter, inquiry] = payload.split(" ");
      if (asker !== name) grants.recall(counter as CounterId, Number(inquiry ?? 0));
    },
  });
  const usage = new UsageReader(url, MOST_CHARTS);
  const spending = new UsageReader(url, MOST_SPENDINGS);
  log("node", { name, epoch: node.epoch });

  return {
    ledger,
    journal: books.journal,
    keys,
    nodes: registry,
    accounts: new PostgresAccountStore(postgres, clock, (version) => node.acknowledged(version)),
    lowCredit: new PostgresLowCreditStore(postgres),
    signingKeys: new PostgresSigningKeyStore(postgres),
    keyring,
    healthy: () => books.journal.healthy && node.usable(),
    async balance(id) {
      await books.catchUp();
      const { credited, spent } = await store.balance(id);
      const held = ledger.heldOn(balanceCounter(id));
      const total = (credited - spent) as NanoUsd;
      return { credited, total, held, available: (total - held) as NanoUsd };
    },
    async use(id) {
      await books.catchUp();
      return { spent: await store.spent(id), held: ledger.heldOn(id) };
    },
    credit: (credit) => store.credit(credit),
    async debit(debit) {
      const { balanceId, idempotencyKey, amount } = debit;
      const done = amount === "all" ? await store.entry(idempotencyKey) : await store.debit(debit);
      if (done !== null && !("available" in done)) return done;
      // What nodes were granted and do not use comes back before more is taken, or all.
      await node.acknowledged(await registry.recall(balanceId, [balanceCounter(balanceId)]));
      return store.debit(debit);
    },
    credits: (balance, limit) => store.credits(balance, limit),
    async receipt(id) {
      await books.catchUp();
      const found = await store.receipt(id);
      if (found !== null || !isLaterThan(epochMs(clock.now() - LONGEST_REQUEST_MS), id)) return found;
      // It may have ended at another node a moment ago, and be on its way from that one's journal.
      await pause(clock, SHIPPED_MS);
      return store.receipt(id);
    },
    async receipts(balance, filter, limit, before) {
      await books.catchUp();
      return store.receipts(balance, filter, limit, before);
    },
    async usage(of) {
      await books.catchUp();
      return usage.sums(of);
    },
    async spending(of) {
      await books.catchUp();
      return spending.spending(of);
    },
    fold: (before) => store.fold(before),
    async audit() {
      await books.journal.flushed();
      await books.catchUp();
      const { appliedThrough } = books;
      const audit = await store.audit();
      // What was shipped in this epoch is what this process has spent.
      const shipped = await store.shipped(name);
      return withMemory(audit, ledger, appliedThrough, (id) => shipped.get(id) ?? 0);
    },
    // What PostgreSQL refuses is told as `StoreUnreachable`.
    diskRefused: () => false,
    figures: () => figures(grants, books, node),
    async close() {
      stopTending();
      void answering.stop();
      stopClosing();
      // The epoch of a node that could not ship everything stays open: its next life ships the rest and
      // closes it.
      if (await books.close()) await node.leave().catch((error) => log("lease", { error: String(error) }));
      else await node.stop();
      usage.stop();
      spending.stop();
      await postgres.close();
    },
  };
}

type PostgresPlace = Extract<StoreConfig, { kind: "postgres" }>;

/** What both kinds of nodes' books can do. */
type NodeBooks = PostgresBooks | DisklessBooks;

async function journalBooks(
  parts: BookkeepingParts,
  store: PostgresLedgerStore,
  node: string,
  epoch: number | null,
): Promise<NodeBooks> {
  // Apart from the files of a gateway on SQLite: ends that are in one store must not be shipped to the other.
  const path = join(parts.folder.path, "node");
  mkdirSync(path, { recursive: true, mode: 0o700 });
  return PostgresBooks.open({ ...journalOptions(parts, path), store, node, epoch });
}

function disklessBooks({ clock, log }: BookkeepingParts, store: PostgresHolds, node: string): NodeBooks {
  return new DisklessBooks({
    store,
    node,
    clock,
    defer: setImmediate,
    onFault: (error) => log("books", { error: String(error) }),
  });
}

const CONNECTIONS = 8;
const DEADLINE_MS = 5_000;
const TEND_MS = 250;
const LOOK_MS = 1_000;
/** Nodes ship each 200 ms. */
const SHIPPED_MS = 300;
const LONGEST_REQUEST_MS = 3_600_000;
/** Of `TEND_MS`. */
const IDLE_EVERY = 40;

/** Sends a ledger's statements once they are durable, and tells its grants what comes of them. */
function statementsTo(
  authority: PostgresAuthority,
  journal: NodeBooks["journal"],
  grants: () => Grants,
  log: Log,
): (statement: Statement) => void {
  let lastTold: unknown = null;
  // The statements of a batch fail together, and are logged once.
  const failed = (error: unknown): void => {
    if (error !== lastTold) log("grants", { error: String(error) });
    lastTold = error;
  };
  return onceDurable(
    journal,
    (statement) => void authority.settle(statement).then((grant) => grants().receive(grant), failed),
  );
}

function forget(keyring: Keyring, changes: readonly MembershipChange[]): void {
  const keys = changes.flatMap(({ key }) => (key === null ? [] : [{ hash: key }]));
  keyring.forget(
    keys,
    changes.map(({ balance }) => balance),
  );
}

/** Keeps the grants' correspondence going; returns what ends it. */
function tend(grants: Grants, clock: Clock): () => void {
  let turns = 0;
  let timer = clock.after(TEND_MS, again);
  function again(): void {
    timer = clock.after(TEND_MS, again);
    grants.tend();
    if (++turns % IDLE_EVERY === 0) grants.returnIdle();
  }
  return () => timer.cancel();
}

/** Finds the inquiries that no notification told of. */
const answerInquiries = (authority: PostgresAuthority, node: string, grants: Grants, clock: Clock): Rounds =>
  new Rounds(clock, LOOK_MS, async () => {
    // A database that is away is told of elsewhere.
    const found = await authority.inquiries(node).catch(() => []);
    for (const { counter, inquiry } of found) grants.recall(counter, inquiry);
    return LOOK_MS;
  });

function figures(grants: Grants, { journal, shipped, batches }: NodeBooks, node: Membership): Figure[] {
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
      help: "Database statements for grants, since start.",
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
      help: "Ended requests that are durable in the journal and not yet in PostgreSQL.",
      value: journal.unappliedCount,
    },
    {
      name: "gateway_shipped_ends",
      help: "Ended requests shipped to PostgreSQL since start.",
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
