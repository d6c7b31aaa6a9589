import type { CounterId } from "../../ledger/counter.ts";
import { recoveredReceipt } from "../../ledger/receipt.ts";
import { recoveredEnd } from "../../ledger/recovery.ts";
import { StoreUnusable } from "../../units/errors/bookkeeping.ts";
import { SqlAccountStore } from "../customers/account-store.ts";
import { SqlKeyStore } from "../customers/key-store.ts";
import { connectionMistake, migratePostgres, Postgres } from "../database/postgres.ts";
import { CHANGES, PostgresDatabase } from "../database/postgres-database.ts";
import { disklessBooks, PostgresHolds } from "../journal/diskless-books.ts";
import { postgresAuthority, RECALLS } from "../ledger/grants.ts";
import { PostgresLedgerStore } from "../ledger/postgres-ledger-store.ts";
import {
  CONVERSATIONS,
  conversationsIn,
  HELD,
  heldMessage,
  notifyConversations,
  postgresHeldExchange,
} from "../nodes/conversation-notices.ts";
import type { NodeStore } from "../nodes/node-store.ts";
import { closeGoneNodes, PostgresRegistry } from "../nodes/postgres-registry.ts";
import type { JournalLocation } from "../store-config.ts";
import { type Bookkeeping, type BookkeepingParts, sqlStores } from "./bookkeeping.ts";
import { journalBooks, openNodeBooks } from "./bookkeeping-node.ts";

/** One of many processes: its journal in the data folder or in PostgreSQL, everything else in PostgreSQL. */
export async function openPostgresBooks(
  parts: BookkeepingParts,
  location: PostgresLocation,
): Promise<Bookkeeping> {
  const postgres = new Postgres(
    { url: location.url, connections: CONNECTIONS, deadlineMs: DEADLINE_MS },
    parts.clock,
  );
  await migratePostgres(postgres).catch(async (error: unknown) => {
    const mistake = await connectionMistake(location.url, error);
    throw mistake === null ? error : new StoreUnusable(mistake, { cause: error });
  });
  return openNodeBooks(parts, postgresNodeStore(parts, location, postgres));
}

interface PostgresLocation {
  readonly url: string;
  readonly journal: JournalLocation;
}

function postgresNodeStore(
  { config, clock, log }: BookkeepingParts,
  { url, journal }: PostgresLocation,
  postgres: Postgres,
): NodeStore {
  const onFault = (error: unknown) => log("books", { error: String(error) });
  const db = new PostgresDatabase(postgres);
  const registry = new PostgresRegistry(db, (orphan) =>
    recoveredEnd(orphan, config.generation.writeOffTokens, recoveredReceipt),
  );
  const ledger = new PostgresLedgerStore(db);
  return {
    registry,
    authority: postgresAuthority(db),
    ledger,
    stores: sqlStores(db, clock),
    usagePath: url,
    keys: (acknowledged) => new SqlKeyStore(new PostgresDatabase(postgres, acknowledged), clock),
    accounts: (acknowledged) => new SqlAccountStore(new PostgresDatabase(postgres, acknowledged), clock),
    openBooks: async (parts, node) =>
      journal === "postgres"
        ? disklessBooks({ store: new PostgresHolds(db), node, clock, defer: setImmediate, onFault })
        : journalBooks(parts, ledger.endsOf(node)),
    join: (node) => registry.join(node, journal),
    held: postgresHeldExchange(db),
    notifyConversations: (node, routes) => notifyConversations(db, node, routes),
    listen: (onNotice) =>
      postgres.listen({
        [CHANGES]: () => onNotice({ kind: "changed" }),
        [RECALLS]: (payload) => {
          const [asker, counter, inquiry = 0] = payload.split(" ");
          const of = { counter: counter as CounterId, inquiry: Number(inquiry) };
          onNotice({ kind: "recalled", asker: asker!, inquiry: of });
        },
        [CONVERSATIONS]: (payload) => onNotice({ kind: "conversations", ...conversationsIn(payload) }),
        [HELD]: (payload) => {
          const message = heldMessage(payload);
          if (message !== null) onNotice({ kind: "held", message });
        },
      }),
    serveOthers: (usable) => closeGoneNodes({ registry, usable, clock, log }),
    close: () => postgres.close(),
  };
}

const CONNECTIONS = 8;
const DEADLINE_MS = 5_000;
