import type { StoreConfig } from "../store-config.ts";
import { FIRST_IN_POSTGRES, FIRST_IN_SQLITE, firstTables } from "./first-tables.ts";
import { type Schema, versionOf } from "./schema-version.ts";

/** Statements in the words of SQLite for both databases, and then those that only one of them needs. */
type Migration = string | { readonly both?: string; readonly sqlite?: string; readonly postgres?: string };

/**
 * Entries are only ever added. Times are ms since 1970, money nano-dollars. A database counts those that say something to
 * it, the first release's as 15 in SQLite and 18 in PostgreSQL.
 */
const MIGRATIONS: readonly Migration[] = [
  // everything that the first release began with
  {
    sqlite: firstTables(true) + FIRST_IN_SQLITE,
    postgres: inPostgres(firstTables(false)) + FIRST_IN_POSTGRES,
  },
  // claims on credit that requests hold
  `
  -- The part of a debit that requests held and that may still be lost; zero once that is decided.
  ALTER TABLE credits ADD COLUMN claimed INTEGER NOT NULL DEFAULT 0;
  CREATE INDEX credits_claimed ON credits (idempotency_key) WHERE claimed > 0;
  -- What of its amount the payment should have credited, as its rail last saw it; null where that is not known.
  ALTER TABLE payments ADD COLUMN should_be INTEGER;
  `,
  // what credentials derive from
  `
  -- How many claims of a balance were withdrawn, undone or detached: claim number reclaims + 1 is in force, or none.
  ALTER TABLE balances ADD COLUMN reclaims INTEGER NOT NULL DEFAULT 0;
  -- The number of the claim that a key derives from, 0 for set-up: see customers/keys/root. It takes the place of made_by.
  ALTER TABLE keys ADD COLUMN root INTEGER NOT NULL DEFAULT 0;
  -- What was made since an account with a recovery secret of its own claimed the balance may be made with that one.
  UPDATE keys SET root = 1 WHERE balance_id IN (SELECT id FROM balances WHERE setup_key IS NOT NULL) AND (
    made_by IS NOT NULL OR created_at >= (
      SELECT coalesce(claimed_at, attached_at) FROM balances WHERE id = keys.balance_id AND undo_hash IS NOT NULL));
  `,
  // whose runs are
  `
  -- The lineage of the key that may lower its limits; null for a run from before that was known.
  ALTER TABLE runs ADD COLUMN started_by TEXT;
  ALTER TABLE runs ADD COLUMN revision INTEGER NOT NULL DEFAULT 0;
  `,
  // what the processes of a store have in common
  `
  -- see store/nodes/fleet
  CREATE TABLE fleet_secrets (name TEXT PRIMARY KEY, secret TEXT NOT NULL) STRICT, WITHOUT ROWID;
  CREATE TABLE node_settings (node TEXT PRIMARY KEY, settings TEXT NOT NULL) STRICT, WITHOUT ROWID;
  `,
  // nonces of gas accounts
  `
  -- See payments/gas-line. Rows go once their nonce is in a final block.
  CREATE TABLE gas_nonces (
    chain_id INTEGER NOT NULL,
    account TEXT NOT NULL,
    nonce INTEGER NOT NULL,
    payment TEXT,
    -- with a space between two
    signed TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    signed_at INTEGER NOT NULL,
    PRIMARY KEY (chain_id, account, nonce)
  ) STRICT, WITHOUT ROWID;
  `,
  // gas that payments waste
  `
  -- Gas that a payment's transfer may waste, or has wasted; see payments/payment.
  ALTER TABLE payments ADD COLUMN gas INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE payments ADD COLUMN wasted_at INTEGER;
  CREATE INDEX payments_wasted ON payments (wasted_at, payer) WHERE wasted_at IS NOT NULL;
  `,
  // the payment that the key of an entry names (see payments/payment), and in SQLite the names of PostgreSQL's columns
  {
    sqlite: `
  ALTER TABLE budgets RENAME COLUMN window TO period;
  ALTER TABLE suspensions RENAME COLUMN by TO by_whom;
  ALTER TABLE totals RENAME TO counters;
  ALTER TABLE counters RENAME COLUMN account TO id;
  DROP INDEX credits_by_balance;
  CREATE INDEX credits_by_balance ON credits (balance_id, at);
  ALTER TABLE credits ADD COLUMN payment_id TEXT GENERATED ALWAYS AS (CASE
    WHEN substr(idempotency_key, 1, 8) = 'payment:'
    THEN substr(idempotency_key, 9, instr(substr(idempotency_key, 9) || ':', ':') - 1) END) VIRTUAL;
  CREATE INDEX credits_by_payment ON credits (payment_id) WHERE payment_id IS NOT NULL;
  `,
    postgres: `
  ALTER TABLE credits ADD COLUMN payment_id TEXT GENERATED ALWAYS AS (CASE
    WHEN substr(idempotency_key, 1, 8) = 'payment:' THEN split_part(idempotency_key, ':', 2) END) STORED;
  CREATE INDEX credits_by_payment ON credits (payment_id) WHERE payment_id IS NOT NULL;
  `,
  },
  // what is granted of a counter, and inquiries after it, next to what is spent
  {
    sqlite: `
  ALTER TABLE counters ADD COLUMN reserved INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE counters ADD COLUMN inquiries INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE counters ADD COLUMN inquired_at INTEGER;
  CREATE INDEX counters_by_inquiry ON counters (inquired_at) WHERE inquired_at IS NOT NULL;
  INSERT INTO counters (id, reserved, inquiries)
    SELECT counter, sum(granted - shipped), max(max(heard), max(inquiry)) FROM grants WHERE true GROUP BY counter
    ON CONFLICT (id) DO UPDATE SET reserved = excluded.reserved, inquiries = excluded.inquiries;
  ALTER TABLE grants DROP COLUMN inquiry;
  `,
  },
  // how often what people change was changed
  `
  ALTER TABLE accounts ADD COLUMN version INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE balances ADD COLUMN version INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE payments ADD COLUMN version INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE runs ADD COLUMN version INTEGER NOT NULL DEFAULT 0;
  `,
  // what balances and keys are charged by
  `
  -- The names of price lists of the configuration: see catalog/price-list.
  ALTER TABLE balances ADD COLUMN price_list TEXT;
  ALTER TABLE keys ADD COLUMN price_list TEXT;
  `,
  // models and prices that the operator applied from model lists
  `
  -- see store/nodes/fleet
  CREATE TABLE model_versions (
    number INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    source TEXT NOT NULL,
    previous INTEGER NOT NULL,
    models TEXT NOT NULL
  ) STRICT;
  `,
  // events and where they are sent
  `
  -- See customers/events. An event is there only if an endpoint takes its kind.
  CREATE TABLE events (
    id TEXT PRIMARY KEY,
    kind TEXT NOT NULL,
    balance_id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    -- JSON
    data TEXT NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX events_by_time ON events (created_at, id);

  CREATE TABLE webhooks (
    id TEXT PRIMARY KEY,
    url TEXT NOT NULL,
    -- each between two spaces; empty for all
    kinds TEXT NOT NULL,
    -- with a space between two
    secrets TEXT NOT NULL,
    low_credit INTEGER,
    failures INTEGER NOT NULL DEFAULT 0,
    problem TEXT,
    paused_at INTEGER,
    due_at INTEGER NOT NULL DEFAULT 0
  ) STRICT, WITHOUT ROWID;

  -- Events that wait for an endpoint.
  CREATE TABLE webhook_deliveries (
    webhook_id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    event_id TEXT NOT NULL,
    PRIMARY KEY (webhook_id, created_at, event_id)
  ) STRICT, WITHOUT ROWID;
  `,
  // which hosts may serve a key's requests
  `
  -- JSON: see units/key-policy. Null: none.
  ALTER TABLE keys ADD COLUMN policy TEXT;
  `,
  // where owners have events sent, and what was delivered
  `
  -- Endpoints of owners: see customers/events/own-webhook. Apart from those of the configuration, because gateways from
  -- before would remove them there.
  CREATE TABLE owner_webhooks (
    id TEXT PRIMARY KEY,
    balance_id TEXT NOT NULL,
    url TEXT NOT NULL,
    -- each between two spaces; empty for all
    kinds TEXT NOT NULL,
    format TEXT NOT NULL,
    -- sealed, the newest first, with a space between two
    secrets TEXT NOT NULL,
    -- The older secret signs until then.
    overlap_until INTEGER,
    created_at INTEGER NOT NULL,
    failures INTEGER NOT NULL DEFAULT 0,
    problem TEXT,
    paused_at INTEGER,
    due_at INTEGER NOT NULL DEFAULT 0
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX owner_webhooks_by_balance ON owner_webhooks (balance_id, created_at, id);

  -- As webhook_deliveries.
  CREATE TABLE owner_deliveries (
    webhook_id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    event_id TEXT NOT NULL,
    PRIMARY KEY (webhook_id, created_at, event_id)
  ) STRICT, WITHOUT ROWID;

  -- What endpoints took, for as long as its events are kept.
  CREATE TABLE delivered_events (
    event_id TEXT NOT NULL,
    webhook_id TEXT NOT NULL,
    delivered_at INTEGER NOT NULL,
    PRIMARY KEY (event_id, webhook_id)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX events_by_balance ON events (balance_id, created_at, id);
  `,
  // who has changed what
  `
  -- See customers/changes. Rows are added in the transaction of what they tell, and never changed.
  CREATE TABLE change_log (
    id TEXT PRIMARY KEY,
    created_at INTEGER NOT NULL,
    by_kind TEXT NOT NULL,
    by_id TEXT NOT NULL,
    by_name TEXT,
    action TEXT NOT NULL,
    subject TEXT NOT NULL,
    balance_id TEXT,
    -- JSON: the fields that differ
    was TEXT NOT NULL,
    became TEXT NOT NULL,
    network TEXT NOT NULL,
    request TEXT NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX change_log_by_time ON change_log (created_at, id);
  CREATE INDEX change_log_by_balance ON change_log (balance_id, created_at, id) WHERE balance_id IS NOT NULL;
  CREATE INDEX change_log_by_subject ON change_log (subject, created_at, id);
  CREATE INDEX change_log_by_author ON change_log (by_id, created_at, id);
  CREATE INDEX change_log_by_action ON change_log (action, created_at, id);
  `,
  // budgets that cap each value of a tag
  `
  -- The tag of which each value has the cap for itself; null: all requests share it.
  ALTER TABLE budgets ADD COLUMN per TEXT;
  `,
  // what is exported, and how far; ends in PostgreSQL from before have no number until an export gives them one
  {
    both: `
  -- See store/export. Where rows of the books are exported to; the configuration names the active one.
  CREATE TABLE export_targets (
    id TEXT PRIMARY KEY,
    is_active INTEGER NOT NULL,
    due_at INTEGER NOT NULL DEFAULT 0,
    failures INTEGER NOT NULL DEFAULT 0,
    problem TEXT
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE export_cursors (
    target TEXT NOT NULL,
    kind TEXT NOT NULL,
    -- the number of the last row that is there
    last INTEGER NOT NULL DEFAULT 0,
    -- the file that is being written: the number of its last row, and how many rows it has
    file_last INTEGER,
    file_rows INTEGER,
    -- what was booked before then is there
    caught_up_at INTEGER NOT NULL,
    PRIMARY KEY (target, kind)
  ) STRICT, WITHOUT ROWID;
${numbering("events").both}`,
    sqlite: numbering("events").sqlite,
    postgres: `${numbering("events").postgres}
  ALTER TABLE ends ADD COLUMN seq BIGINT;
  CREATE SEQUENCE ends_seq OWNED BY ends.seq;
  ALTER TABLE ends ALTER COLUMN seq SET DEFAULT nextval('ends_seq');
  CREATE INDEX ends_by_number ON ends (seq);
  ALTER TABLE credits ADD COLUMN seq BIGINT;
  CREATE SEQUENCE credits_seq OWNED BY credits.seq;
  ALTER TABLE credits ALTER COLUMN seq SET DEFAULT nextval('credits_seq');
  CREATE INDEX credits_by_number ON credits (seq);
  `,
  },
  // who operates the gateway
  `
  -- See customers/operators: those of the configuration are not here.
  CREATE TABLE operators (
    name TEXT PRIMARY KEY,
    role TEXT NOT NULL,
    token_hash TEXT NOT NULL UNIQUE,
    created_at INTEGER NOT NULL,
    expires_at INTEGER
  ) STRICT, WITHOUT ROWID;
  `,
  // the order of changes, for exports
  numbering("change_log"),
  // what is sold at which price
  `
  -- See store/nodes/fleet.
  CREATE TABLE prices_in_force (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    number INTEGER NOT NULL,
    -- JSON
    snapshot TEXT NOT NULL
  ) STRICT;
  `,
  // below which credit owners want to be notified; null: below what the operator names
  `
  ALTER TABLE balances ADD COLUMN low_credit INTEGER;
  CREATE INDEX balances_by_low_credit ON balances (id) WHERE low_credit IS NOT NULL;
  `,
  // how many keys a balance has at most: making one need not count them
  `
  -- At least as many as are live, and as were made within a day, at that version of the row.
  ALTER TABLE balances ADD COLUMN max_keys INTEGER;
  ALTER TABLE balances ADD COLUMN max_keys_version INTEGER;
  `,
  // what hosts charge the operator
  `
  -- Null where it is not known.
  ALTER TABLE ends ADD COLUMN host_cost INTEGER;
  -- See store/books/margins; day is its first instant.
  CREATE TABLE margins (
    day INTEGER NOT NULL,
    model TEXT NOT NULL,
    host TEXT NOT NULL,
    charged INTEGER NOT NULL,
    cost INTEGER NOT NULL,
    PRIMARY KEY (day, model, host)
  ) STRICT, WITHOUT ROWID;
  `,
  // which hosts are down
  `
  -- See store/books/host-states.
  CREATE TABLE host_states (
    host TEXT PRIMARY KEY,
    is_down INTEGER NOT NULL,
    version INTEGER NOT NULL,
    changed_at INTEGER NOT NULL,
    failed_at INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  `,
  // mails of events to owners
  `
  -- See customers/mail/event-mail: in its latest hour, how many each account was sent.
  CREATE TABLE event_mails (
    account_id TEXT PRIMARY KEY,
    hour INTEGER NOT NULL,
    sent INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  `,
  // which node shipped an end is not written any more
  { postgres: "ALTER TABLE ends ALTER COLUMN node DROP NOT NULL;" },
];

/** Numbers rows in the order of their transactions, and those that are there by their time. */
function numbering(table: "events" | "change_log") {
  const row = table === "events" ? "event" : "change";
  return {
    both: `
  ALTER TABLE ${table} ADD COLUMN seq INTEGER;
  CREATE INDEX ${table}_by_number ON ${table} (seq);
  UPDATE ${table} SET seq = numbered.number
    FROM (SELECT id AS row_id, row_number() OVER (ORDER BY created_at, id) AS number FROM ${table}) AS numbered
    WHERE id = numbered.row_id;
  `,
    sqlite: `
  CREATE TABLE last_${row} (one INTEGER PRIMARY KEY CHECK (one = 1), seq INTEGER NOT NULL) STRICT;
  INSERT INTO last_${row} (one, seq) SELECT 1, count(*) FROM ${table};
  CREATE TRIGGER ${row}s_numbered AFTER INSERT ON ${table} BEGIN
    UPDATE last_${row} SET seq = seq + 1;
    UPDATE ${table} SET seq = (SELECT seq FROM last_${row}) WHERE id = NEW.id;
  END;
  `,
    postgres: `
  CREATE SEQUENCE ${table}_seq OWNED BY ${table}.seq;
  SELECT setval('${table}_seq', count(*) + 1, false) FROM ${table};
  ALTER TABLE ${table} ALTER COLUMN seq SET DEFAULT nextval('${table}_seq');
  `,
  };
}

/** PostgreSQL's columns have their type anyway, and its whole numbers need saying how long they are. */
export function inPostgres(tables: string): string {
  return tables.replaceAll("INTEGER", "BIGINT").replace(/\) STRICT(, WITHOUT ROWID)?;/g, ");");
}

const migrationsOf = (own: "sqlite" | "postgres", words: (tables: string) => string): readonly string[] =>
  MIGRATIONS.map((migration) =>
    typeof migration === "string" ? words(migration) : words(migration.both ?? "") + (migration[own] ?? ""),
  ).filter((statements) => statements !== "");

export const SQLITE_SCHEMA: Schema = {
  first: 15,
  migrations: migrationsOf("sqlite", (tables) => tables),
  // Older ones do not count the versions of what they change.
  oldestUser: 24,
  source: "data folder",
  wayBack: "start this one on a backup",
};

export const POSTGRES_SCHEMA: Schema = {
  first: 18,
  migrations: migrationsOf("postgres", inPostgres),
  oldestUser: 26,
  source: "database",
  wayBack: "restore a dump",
};

export const schemaFor = ({ kind }: Pick<StoreConfig, "kind">): Schema =>
  kind === "sqlite" ? SQLITE_SCHEMA : POSTGRES_SCHEMA;

/** The version of the tables that this gateway makes and writes. */
export const schemaVersion = (store: Pick<StoreConfig, "kind">): number => versionOf(schemaFor(store));
