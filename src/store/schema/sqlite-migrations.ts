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

/** Entries are only ever added. Times are ms since 1970, money nano-dollars. */
const MIGRATIONS: readonly string[] = [
  // 15: everything that the first release began with
  `
${FIRST_TABLES}
  CREATE TABLE budgets (
    id TEXT PRIMARY KEY,
    balance_id TEXT NOT NULL REFERENCES balances (id),
    name TEXT NOT NULL,
    cap INTEGER NOT NULL,
    window TEXT NOT NULL,
    UNIQUE (balance_id, name)
  ) STRICT;

  -- Below zero, an amount was taken back. took_all: all there was, so a repeat must ask for that again.
  CREATE TABLE credits (
    seq INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    idempotency_key TEXT NOT NULL UNIQUE,
    balance_id TEXT NOT NULL,
    amount INTEGER NOT NULL,
    note TEXT,
    took_all INTEGER NOT NULL DEFAULT 0
  ) STRICT;
  CREATE INDEX credits_by_balance ON credits (balance_id);

  -- The end of each request, once: one row, because it is written for every one of them. Append-only.
  CREATE TABLE ends (
    seq INTEGER PRIMARY KEY,
    receipt TEXT NOT NULL UNIQUE,
    at INTEGER NOT NULL,
    balance_id TEXT NOT NULL,
    key_id TEXT NOT NULL,
    state TEXT NOT NULL,
    charged INTEGER NOT NULL,
    written_off INTEGER NOT NULL,
    lost INTEGER NOT NULL,
    -- what the charge was counted on besides the balance, and allowances (in requests), separated by spaces
    counters TEXT NOT NULL,
    allowances TEXT NOT NULL,
    -- the receipt as it is answered, JSON
    body TEXT NOT NULL
  ) STRICT;
  CREATE INDEX ends_by_balance ON ends (balance_id);

  -- The books as an accountant reads them: every amount leaves one account and enters another.
  CREATE VIEW entries (at, kind, reference, debit, credit, amount) AS
    WITH lines AS (
      SELECT at, receipt, balance_id, charged, written_off, lost FROM ends
      UNION ALL SELECT month, receipts || ' receipts', balance_id, charged, written_off, lost FROM folded
    )
    SELECT at, 'credit', idempotency_key, 'funding', 'balance:' || balance_id, amount FROM credits WHERE amount > 0
    UNION ALL SELECT at, 'debit', idempotency_key, 'balance:' || balance_id, 'funding', -amount FROM credits WHERE amount < 0
    UNION ALL SELECT at, 'charge', receipt, 'balance:' || balance_id, 'revenue', charged FROM lines WHERE charged > 0
    UNION ALL SELECT at, 'write_off', receipt, 'write_offs', 'revenue', written_off FROM lines WHERE written_off > 0
    UNION ALL SELECT at, 'loss', receipt, 'losses', 'revenue', lost FROM lines WHERE lost > 0;

  -- Running sums of credits and of everything that is counted; the audit recomputes them.
  CREATE TABLE totals (
    account TEXT PRIMARY KEY,
    credited INTEGER NOT NULL DEFAULT 0,
    spent INTEGER NOT NULL DEFAULT 0
  ) STRICT, WITHOUT ROWID;

  -- How far the journal of one process was booked: as shipped, for those of several.
  CREATE TABLE applied (file INTEGER PRIMARY KEY, bytes INTEGER NOT NULL) STRICT;

  -- Who suspended what, when and why; reason is null where a suspension was lifted, and lifted which; null for all. Append-only.
  CREATE TABLE suspensions (
    seq INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    subject TEXT NOT NULL,
    reason TEXT,
    by TEXT NOT NULL,
    note TEXT,
    lifted TEXT
  ) STRICT;
  CREATE INDEX suspensions_by_subject ON suspensions (subject);

  -- Each life of a node has an epoch, which is open until what it was granted is free again.
  CREATE TABLE nodes (name TEXT PRIMARY KEY, epoch INTEGER NOT NULL, open INTEGER NOT NULL) STRICT, WITHOUT ROWID;

  -- What nodes were granted of each counter in their present epochs: see ledger/authority. Of it, shipped is in totals.
  CREATE TABLE grants (
    counter TEXT NOT NULL,
    node TEXT NOT NULL,
    granted INTEGER NOT NULL,
    used INTEGER NOT NULL,
    number INTEGER NOT NULL,
    heard INTEGER NOT NULL,
    -- the latest that this node has had begun, or known
    inquiry INTEGER NOT NULL,
    shipped INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (counter, node)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX grants_by_node ON grants (node);

  -- How often a keeper has begun: what it told nodes of changes is not remembered by the next.
  CREATE TABLE keeper (one INTEGER PRIMARY KEY CHECK (one = 1), lives INTEGER NOT NULL) STRICT;
  `,
  // 16: claims on credit that requests hold
  CLAIMS,
  // 17: what credentials derive from
  ROOTS,
  // 18: whose runs are
  RUNS_OF_KEYS,
  // 19: what the processes of a store have in common
  FLEET,
  // 20: nonces of gas accounts
  GAS_NONCES,
  // 21: gas that payments waste
  WASTED_GAS,
  // 22: the names of PostgreSQL's columns
  `
  ALTER TABLE budgets RENAME COLUMN window TO period;
  ALTER TABLE suspensions RENAME COLUMN by TO by_whom;
  ALTER TABLE totals RENAME TO counters;
  ALTER TABLE counters RENAME COLUMN account TO id;
  DROP INDEX credits_by_balance;
  CREATE INDEX credits_by_balance ON credits (balance_id, at);
  -- The payment that the key of an entry names: see payments/payment.
  ALTER TABLE credits ADD COLUMN payment_id TEXT GENERATED ALWAYS AS (CASE
    WHEN substr(idempotency_key, 1, 8) = 'payment:'
    THEN substr(idempotency_key, 9, instr(substr(idempotency_key, 9) || ':', ':') - 1) END) VIRTUAL;
  CREATE INDEX credits_by_payment ON credits (payment_id) WHERE payment_id IS NOT NULL;
  `,
  // 23: what is granted of a counter, and inquiries after it, next to what is spent
  `
  ALTER TABLE counters ADD COLUMN reserved INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE counters ADD COLUMN inquiries INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE counters ADD COLUMN inquired_at INTEGER;
  CREATE INDEX counters_by_inquiry ON counters (inquired_at) WHERE inquired_at IS NOT NULL;
  INSERT INTO counters (id, reserved, inquiries)
    SELECT counter, sum(granted - shipped), max(max(heard), max(inquiry)) FROM grants WHERE true GROUP BY counter
    ON CONFLICT (id) DO UPDATE SET reserved = excluded.reserved, inquiries = excluded.inquiries;
  ALTER TABLE grants DROP COLUMN inquiry;
  `,
  // 24: how often what people change was changed
  VERSIONS,
  // 25: what balances and keys are charged by
  PRICE_LISTS,
  // 26: models and prices that the operator applied from model lists
  MODEL_VERSIONS,
  // 27: events and where they are sent
  EVENTS,
  // 28: which hosts may serve a key's requests
  KEY_POLICIES,
  // 29: where owners have events sent, and what was delivered
  OWNERS_EVENTS,
  // 30: who has changed what
  CHANGE_LOG,
  // 31: budgets that cap each value of a tag
  TAG_BUDGETS,
  // 32: what is exported, and how far
  `
${EXPORTS}
  CREATE TABLE last_event (one INTEGER PRIMARY KEY CHECK (one = 1), seq INTEGER NOT NULL) STRICT;
  INSERT INTO last_event (one, seq) SELECT 1, count(*) FROM events;
  CREATE TRIGGER events_numbered AFTER INSERT ON events BEGIN
    UPDATE last_event SET seq = seq + 1;
    UPDATE events SET seq = (SELECT seq FROM last_event) WHERE id = NEW.id;
  END;
  `,
  // 33: who operates the gateway
  OPERATORS,
  // 34: the order of changes, for exports
  `
${EXPORTED_CHANGES}
  CREATE TABLE last_change (one INTEGER PRIMARY KEY CHECK (one = 1), seq INTEGER NOT NULL) STRICT;
  INSERT INTO last_change (one, seq) SELECT 1, count(*) FROM change_log;
  CREATE TRIGGER changes_numbered AFTER INSERT ON change_log BEGIN
    UPDATE last_change SET seq = seq + 1;
    UPDATE change_log SET seq = (SELECT seq FROM last_change) WHERE id = NEW.id;
  END;
  `,
];

export const SQLITE_SCHEMA: Schema = {
  first: 15,
  migrations: MIGRATIONS,
  // Older ones do not count the versions of what they change.
  oldestUser: 24,
  source: "data folder",
  wayBack: "start this one on a backup",
};
