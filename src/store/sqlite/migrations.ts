import {
  ACCOUNTS,
  CLAIMS,
  FLEET,
  FOLDED,
  GAS_NONCES,
  KEYS,
  LOW_CREDIT,
  PAYMENTS,
  PAYMENTS_AT_A_TIME,
  ROOTS,
  RUNS,
  RUNS_OF_KEYS,
  SIGN_IN,
  SIGNING_KEYS,
  WASTED_GAS,
} from "../sql/tables.ts";

/**
 * Each entry brings the schema one version up. Entries are only ever added. Times are ms since 1970, money
 * nano-dollars.
 */
export const MIGRATIONS: readonly string[] = [
  // 1: balances, keys, recovery secrets, budgets
  `
  CREATE TABLE balances (
    id TEXT PRIMARY KEY,
    account_id TEXT,
    suspended TEXT,
    recovery_hash TEXT UNIQUE,
    created_at INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX balances_by_account ON balances (account_id);

${KEYS}
  CREATE INDEX keys_by_lineage ON keys (lineage);

  CREATE TABLE budgets (
    id TEXT PRIMARY KEY,
    balance_id TEXT NOT NULL REFERENCES balances (id),
    name TEXT NOT NULL,
    cap INTEGER NOT NULL,
    window TEXT NOT NULL,
    UNIQUE (balance_id, name)
  ) STRICT;
  `,
  // 2: the ledger
  `
  CREATE TABLE credits (
    seq INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    idempotency_key TEXT NOT NULL UNIQUE,
    balance_id TEXT NOT NULL,
    amount INTEGER NOT NULL,
    note TEXT
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
    SELECT at, 'credit', idempotency_key, 'funding', 'balance:' || balance_id, amount FROM credits
    UNION ALL SELECT at, 'charge', receipt, 'balance:' || balance_id, 'revenue', charged FROM ends WHERE charged > 0
    UNION ALL SELECT at, 'write_off', receipt, 'write_offs', 'revenue', written_off FROM ends WHERE written_off > 0
    UNION ALL SELECT at, 'loss', receipt, 'losses', 'revenue', lost FROM ends WHERE lost > 0;

  -- Running sums of credits and of everything that is counted; the audit recomputes them.
  CREATE TABLE totals (
    account TEXT PRIMARY KEY,
    credited INTEGER NOT NULL DEFAULT 0,
    spent INTEGER NOT NULL DEFAULT 0
  ) STRICT, WITHOUT ROWID;

  -- Where the journal has been applied up to: see store/journal.
  CREATE TABLE applied (file INTEGER PRIMARY KEY, bytes INTEGER NOT NULL) STRICT;
  `,
  // 3: the operator's list of balances
  `
  CREATE INDEX balances_by_time ON balances (created_at, id);
  `,
  // 4: accounts
  `
${ACCOUNTS}

  -- When a balance became its account's; the first is the one that a session acts on.
  ALTER TABLE balances ADD COLUMN attached_at INTEGER;

${SIGN_IN}

  -- Who suspended what, when and why; reason is null where a suspension was lifted. Append-only.
  CREATE TABLE suspensions (
    seq INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    subject TEXT NOT NULL,
    reason TEXT,
    by TEXT NOT NULL,
    note TEXT
  ) STRICT;
  CREATE INDEX suspensions_by_subject ON suspensions (subject);
  `,
  // 5: retention of receipts
  `
${FOLDED}

  DROP VIEW entries;
  CREATE VIEW entries (at, kind, reference, debit, credit, amount) AS
    WITH lines AS (
      SELECT at, receipt, balance_id, charged, written_off, lost FROM ends
      UNION ALL SELECT month, receipts || ' receipts', balance_id, charged, written_off, lost FROM folded
    )
    SELECT at, 'credit', idempotency_key, 'funding', 'balance:' || balance_id, amount FROM credits
    UNION ALL SELECT at, 'charge', receipt, 'balance:' || balance_id, 'revenue', charged FROM lines WHERE charged > 0
    UNION ALL SELECT at, 'write_off', receipt, 'write_offs', 'revenue', written_off FROM lines WHERE written_off > 0
    UNION ALL SELECT at, 'loss', receipt, 'losses', 'revenue', lost FROM lines WHERE lost > 0;
  `,
  // 6: credit that is taken back
  `
  -- Below zero, an amount was taken back. took_all: all there was, so a repeat must ask for that again.
  ALTER TABLE credits ADD COLUMN took_all INTEGER NOT NULL DEFAULT 0;

  DROP VIEW entries;
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
  `,
  // 7: owners who are told that credit runs low
  LOW_CREDIT,
  // 8: who may claim a balance, who may take it back, and what owners can end
  `
  -- The lineage of the key that was made at set-up; null for a balance that a sign-in made.
  ALTER TABLE balances ADD COLUMN setup_key TEXT;
  UPDATE balances SET setup_key = (
    SELECT id FROM keys WHERE balance_id = balances.id AND lineage = id AND created_at >= balances.created_at
    ORDER BY created_at, rowid LIMIT 1
  ) WHERE recovery_hash IS NOT NULL;
  -- The recovery secret from before its account replaced it: see accounts/belonging.
  ALTER TABLE balances ADD COLUMN undo_hash TEXT;
  CREATE UNIQUE INDEX balances_by_undo ON balances (undo_hash) WHERE undo_hash IS NOT NULL;
  -- When its claim took effect: attached_at may be later, so that an account's balances keep their order.
  ALTER TABLE balances ADD COLUMN claimed_at INTEGER;
  UPDATE balances SET claimed_at = attached_at WHERE setup_key IS NOT NULL;
  ALTER TABLE balances ADD COLUMN closed_at INTEGER;

  -- Its address is erased then, and its balances stay for the books.
  ALTER TABLE accounts ADD COLUMN deleted_at INTEGER;
  `,
  // 9: budgets are counted in all windows
  `
  -- What was spent in the windows that were not counted, as far as ends are kept that say so; what others came to
  -- is known of all time. It is kept like them, because ends do not name these windows.
  INSERT INTO folded_counters (counter, spent)
    WITH drawn AS (
      SELECT at, charged, 'budget:' || substr(value, 8, instr(substr(value, 8), ':') - 1) AS budget
      FROM ends, json_each('["' || replace(counters, ' ', '","') || '"]')
      WHERE charged > 0 AND counters LIKE '%budget:%' AND value LIKE 'budget:%'
    ), counted AS (
      SELECT budget || ':day:' || (at - at % 86400000) AS counter, charged FROM drawn
      UNION ALL SELECT budget || ':week:' || (at - (at - 345600000) % 604800000), charged FROM drawn
      UNION ALL SELECT budget || ':month:' || strftime('%s', at / 1000, 'unixepoch', 'start of month') || '000', charged
        FROM drawn
      UNION ALL SELECT budget || ':total:0', charged FROM drawn
      UNION ALL SELECT 'budget:' || substr(counter, 8, instr(substr(counter, 8), ':') - 1) || ':total:0', spent
        FROM folded_counters WHERE counter LIKE 'budget:%'
    )
    SELECT counter, sum(charged) FROM counted GROUP BY counter;
  INSERT INTO totals (account, spent) SELECT counter, spent FROM folded_counters WHERE counter LIKE 'budget:%:%:%';
  `,
  // 10: keys that work only while the balance is the account's that made them
  `
  -- The account whose session made the key; null for others, and for all from before.
  ALTER TABLE keys ADD COLUMN made_by TEXT;
  `,
  // 11: keys that receipts are signed with
  SIGNING_KEYS,
  // 12: several processes, of which one keeps the database
  `
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

  -- Where each node's journal has been booked up to: as applied, for the journal of one process.
  CREATE TABLE shipped (
    node TEXT NOT NULL,
    file INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    PRIMARY KEY (node, file)
  ) STRICT, WITHOUT ROWID;

  -- How often a keeper has begun: what it told nodes of changes is not remembered by the next.
  CREATE TABLE keeper (one INTEGER PRIMARY KEY CHECK (one = 1), lives INTEGER NOT NULL) STRICT;
  `,
  // 13: payments
  PAYMENTS,
  // 14: runs
  RUNS,
  // 15: payments at a time
  PAYMENTS_AT_A_TIME,
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
  // 23: what is granted of a counter, and inquiries after it, beside what is spent
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
];
