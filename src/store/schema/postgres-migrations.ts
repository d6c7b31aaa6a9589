import type { Schema } from "./schema-version.ts";
import {
  CHANGE_LOG,
  CLAIMS,
  EVENTS,
  EXPORTED_CHANGES,
  EXPORTS,
  FIRST_TABLES,
  FLEET,
  GAS_NONCES,
  inPostgres,
  KEY_POLICIES,
  MODEL_VERSIONS,
  OPERATORS,
  OWNERS_EVENTS,
  PRICE_LISTS,
  ROOTS,
  RUNS_OF_KEYS,
  TAG_BUDGETS,
  VERSIONS,
  WASTED_GAS,
} from "./tables.ts";

/**
 * Entries are only ever added. Times are ms since 1970, money nano-dollars; leases alone are the database's own time,
 * because they are compared with nothing else.
 */
const MIGRATIONS: readonly string[] = [
  // 18: everything that the first release began with; see sqlite/migrations
  `
${inPostgres(FIRST_TABLES)}
  CREATE TABLE budgets (
    id TEXT PRIMARY KEY,
    balance_id TEXT NOT NULL REFERENCES balances (id),
    name TEXT NOT NULL,
    cap BIGINT NOT NULL,
    period TEXT NOT NULL,
    UNIQUE (balance_id, name)
  );

  CREATE TABLE credits (
    idempotency_key TEXT PRIMARY KEY,
    at BIGINT NOT NULL,
    balance_id TEXT NOT NULL,
    amount BIGINT NOT NULL,
    note TEXT,
    took_all BOOLEAN NOT NULL DEFAULT FALSE
  );
  CREATE INDEX credits_by_balance ON credits (balance_id, at);

  CREATE TABLE ends (
    receipt TEXT PRIMARY KEY,
    at BIGINT NOT NULL,
    node TEXT NOT NULL,
    balance_id TEXT NOT NULL,
    key_id TEXT NOT NULL,
    state TEXT NOT NULL,
    charged BIGINT NOT NULL,
    written_off BIGINT NOT NULL,
    lost BIGINT NOT NULL,
    counters TEXT NOT NULL,
    allowances TEXT NOT NULL,
    body TEXT NOT NULL
  );
  CREATE INDEX ends_by_balance ON ends (balance_id, at, receipt);
  CREATE INDEX ends_by_time ON ends (at);

  CREATE TABLE suspensions (
    seq BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at BIGINT NOT NULL,
    subject TEXT NOT NULL,
    reason TEXT,
    by_whom TEXT NOT NULL,
    note TEXT,
    lifted TEXT
  );
  CREATE INDEX suspensions_by_subject ON suspensions (subject);

  CREATE TABLE nodes (
    name TEXT PRIMARY KEY,
    -- one life of its process
    epoch BIGINT NOT NULL,
    -- false once the journal of the epoch was read and its grants are free
    open BOOLEAN NOT NULL,
    -- keys and grants may be used until then
    lease_until TIMESTAMPTZ NOT NULL,
    -- the last change that the node has taken notice of
    seen BIGINT NOT NULL,
    -- A node without one never comes back under its name: what it left open is in holds.
    has_journal BOOLEAN NOT NULL DEFAULT TRUE
  );

  -- spent: what ends say. reserved: granted to epochs that are open, less what they have shipped.
  CREATE TABLE counters (
    id TEXT PRIMARY KEY,
    credited BIGINT NOT NULL DEFAULT 0,
    spent BIGINT NOT NULL DEFAULT 0,
    reserved BIGINT NOT NULL DEFAULT 0,
    -- after what nobody knows to be unused; see ledger/authority
    inquiries BIGINT NOT NULL DEFAULT 0,
    inquired_at TIMESTAMPTZ,
    CHECK (credited >= 0 AND spent >= 0 AND reserved >= 0)
  );
  CREATE INDEX counters_by_inquiry ON counters (inquired_at) WHERE inquired_at IS NOT NULL;

  -- One node's grant of one counter, in all of its epoch: see ledger/authority.
  CREATE TABLE grants (
    counter TEXT NOT NULL,
    node TEXT NOT NULL,
    granted BIGINT NOT NULL,
    shipped BIGINT NOT NULL DEFAULT 0,
    used BIGINT NOT NULL,
    number BIGINT NOT NULL,
    -- the latest inquiry that was answered
    heard BIGINT,
    PRIMARY KEY (node, counter),
    CHECK (shipped <= granted)
  );
  CREATE INDEX grants_by_counter ON grants (counter);

  -- One row. A change takes the next version under its lock, so versions are visible in the order of their numbers.
  CREATE TABLE latest_change (one INT PRIMARY KEY, version BIGINT NOT NULL);
  INSERT INTO latest_change (one, version) VALUES (1, 0);

  CREATE TABLE changes (
    version BIGINT PRIMARY KEY,
    at TIMESTAMPTZ NOT NULL,
    -- what nodes must forget: a key, or what the keys of a balance share
    key_hash TEXT,
    balance_id TEXT NOT NULL,
    -- how the ids of counters begin whose limits may be lower now; separated by spaces
    counters TEXT NOT NULL
  );

  -- Streams that are under way at nodes without a journal.
  CREATE TABLE holds (
    receipt TEXT PRIMARY KEY,
    node TEXT NOT NULL,
    held BIGINT NOT NULL,
    -- output tokens, about a second ago
    delivered BIGINT NOT NULL,
    -- as ledger/record formats it, JSON
    record TEXT NOT NULL
  );
  CREATE INDEX holds_by_node ON holds (node);
  `,
  // 19: claims on credit that requests hold
  inPostgres(CLAIMS),
  // 20: what credentials derive from
  inPostgres(ROOTS),
  // 21: whose runs are
  inPostgres(RUNS_OF_KEYS),
  // 22: what the processes of a store have in common
  inPostgres(FLEET),
  // 23: nonces of gas accounts
  inPostgres(GAS_NONCES),
  // 24: gas that payments waste
  inPostgres(WASTED_GAS),
  // 25: the payment that the key of an entry names: see payments/payment
  `
  ALTER TABLE credits ADD COLUMN payment_id TEXT GENERATED ALWAYS AS (CASE
    WHEN substr(idempotency_key, 1, 8) = 'payment:' THEN split_part(idempotency_key, ':', 2) END) STORED;
  CREATE INDEX credits_by_payment ON credits (payment_id) WHERE payment_id IS NOT NULL;
  `,
  // 26: how often what people change was changed
  inPostgres(VERSIONS),
  // 27: what balances and keys are charged by
  inPostgres(PRICE_LISTS),
  // 28: models and prices that the operator applied from model lists
  inPostgres(MODEL_VERSIONS),
  // 29: events and where they are sent
  inPostgres(EVENTS),
  // 30: which hosts may serve a key's requests
  inPostgres(KEY_POLICIES),
  // 31: where owners have events sent, and what was delivered
  inPostgres(OWNERS_EVENTS),
  // 32: who has changed what
  inPostgres(CHANGE_LOG),
  // 33: budgets that cap each value of a tag
  inPostgres(TAG_BUDGETS),
  // 34: what is exported, and how far. Ends from before have no number until an export gives them one.
  `
${inPostgres(EXPORTS)}
  CREATE SEQUENCE events_seq OWNED BY events.seq;
  SELECT setval('events_seq', count(*) + 1, false) FROM events;
  ALTER TABLE events ALTER COLUMN seq SET DEFAULT nextval('events_seq');
  ALTER TABLE ends ADD COLUMN seq BIGINT;
  CREATE SEQUENCE ends_seq OWNED BY ends.seq;
  ALTER TABLE ends ALTER COLUMN seq SET DEFAULT nextval('ends_seq');
  CREATE INDEX ends_by_number ON ends (seq);
  ALTER TABLE credits ADD COLUMN seq BIGINT;
  CREATE SEQUENCE credits_seq OWNED BY credits.seq;
  ALTER TABLE credits ALTER COLUMN seq SET DEFAULT nextval('credits_seq');
  CREATE INDEX credits_by_number ON credits (seq);
  `,
  // 35: who operates the gateway
  inPostgres(OPERATORS),
  // 36: the order of changes, for exports
  `
${inPostgres(EXPORTED_CHANGES)}
  CREATE SEQUENCE change_log_seq OWNED BY change_log.seq;
  SELECT setval('change_log_seq', count(*) + 1, false) FROM change_log;
  ALTER TABLE change_log ALTER COLUMN seq SET DEFAULT nextval('change_log_seq');
  `,
];

export const POSTGRES_SCHEMA: Schema = {
  first: 18,
  migrations: MIGRATIONS,
  // Older ones do not count the versions of what they change.
  oldestUser: 26,
  source: "database",
  wayBack: "restore a dump",
};
