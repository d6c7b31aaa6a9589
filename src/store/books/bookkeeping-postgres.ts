import type { CounterId } from "../../ledger/counter.ts";
import { recoveredReceipt } from "../../ledger/receipt.ts";
import { recoveredEnd } from "../../ledger/recovery.ts";
import { PostgresAuthority, RECALLS } from "../postgres/authority.ts";
import { CHANGES } from "../postgres/changes.ts";
import { CONVERSATIONS, conversationsIn, tellConversations } from "../postgres/conversation-notices.ts";
import { DisklessBooks } from "../postgres/diskless-books.ts";
import { closeGoneNodes } from "../postgres/gone-nodes.ts";
import { HELD, heldMessage, postgresHeldExchange } from "../postgres/held-exchange.ts";
import { PostgresHolds } from "../postgres/holds.ts";
import { PostgresLedgerStore } from "../postgres/ledger-store.ts";
import { migratePostgres, Postgres } from "../postgres/postgres.ts";
import { PostgresRegistry } from "../postgres/registry.ts";
import { PostgresStatements } from "../postgres/statements.ts";
import { SqlAccountStore } from "../sql/account-store.ts";
import { SqlKeyStore } from "../sql/key-store.ts";
import { sqlStores } from "../sql/stores.ts";
import type { JournalPlace } from "../store-config.ts";
import type { Bookkeeping, BookkeepingParts } from "./bookkeeping.ts";
import { journalBooks, openNodeBooks } from "./bookkeeping-node.ts";
import type { NodeStore } from "./node-store.ts";

/** One of many processes: its journal in the data folder or in PostgreSQL, everything else in PostgreSQL. */
export async function openPostgresBooks(
  parts: BookkeepingParts,
  location: PostgresLocation,
): Promise<Bookkeeping> {
  const postgres = new Postgres(
    { url: location.url, connections: CONNECTIONS, deadlineMs: DEADLINE_MS },
    parts.clock,
  );
  await migratePostgres(postgres);
  return openNodeBooks(parts, postgresNodeStore(parts, location, postgres));
}

interface PostgresLocation {
  readonly url: string;
  readonly journal: JournalPlace;
}

function postgresNodeStore(
  { config, clock, log }: BookkeepingParts,
  { url, journal }: PostgresLocation,
  postgres: Postgres,
): NodeStore {
  const registry = new PostgresRegistry(postgres, (orphan) =>
    recoveredEnd(orphan, config.generation.writeOffTokens, recoveredReceipt),
  );
  const ledger = new PostgresLedgerStore(postgres);
  return {
    registry,
    authority: new PostgresAuthority(postgres),
    ledger,
    ...sqlStores(new PostgresStatements(postgres), clock),
    usagePath: url,
    keys: (acknowledged) => new SqlKeyStore(new PostgresStatements(postgres, acknowledged), clock),
    accounts: (acknowledged) => new SqlAccountStore(new PostgresStatements(postgres, acknowledged), clock),
    openBooks: async (parts, node) =>
      journal === "postgres"
        ? disklessBooks(parts, new PostgresHolds(postgres), node)
        : journalBooks(parts, ledger, node, await registry.lastEpoch(node)),
    join: (node) => registry.join(node, journal),
    held: postgresHeldExchange(postgres),
    tellConversations: (node, routes) => tellConversations(postgres, node, routes),
    listen: ({ changed, recalled, conversations, held }) =>
      postgres.listen({
        [CHANGES]: changed,
        [RECALLS]: (payload) => {
          const [asker, counter, inquiry] = payload.split(" ");
          recalled(asker!, { counter: counter as CounterId, inquiry: Number(inquiry ?? 0) });
        },
        [CONVERSATIONS]: (payload) => {
          const { node, routes } = conversationsIn(payload);
          conversations(node, routes);
        },
        [HELD]: (payload) => {
          const message = heldMessage(payload);
          if (message !== null) held(message);
        },
      }),
    lookAfterOthers: (usable) => closeGoneNodes({ registry, usable, clock, log }),
    close: () => postgres.close(),
  };
}

function disklessBooks({ clock, log }: BookkeepingParts, store: PostgresHolds, node: string): DisklessBooks {
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
