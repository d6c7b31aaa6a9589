/** Each entry brings the schema one version up. Entries are only ever added. Times are ms since 1970, money nano-dollars. */
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

  CREATE TABLE keys (
    id TEXT PRIMARY KEY,
    hash TEXT NOT NULL UNIQUE,
    prefix TEXT NOT NULL,
    name TEXT,
    balance_id TEXT NOT NULL REFERENCES balances (id),
    lineage TEXT NOT NULL,
    state TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    rpm_limit INTEGER,
    tpm_limit INTEGER,
    daily_limit INTEGER,
    monthly_limit INTEGER,
    allowed_models TEXT,
    budgets TEXT NOT NULL
  ) STRICT;
  CREATE INDEX keys_by_balance ON keys (balance_id, created_at, id);
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
  -- Append-only double entry: amount moves from debit to credit. Accounts: funding, balance:<id>, revenue, losses,
  -- write_offs. Kinds: credit, terminal (one for each receipt), write_off, loss, allowance (in requests).
  CREATE TABLE entries (
    seq INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    kind TEXT NOT NULL,
    -- the receipt of a terminal entry, the idempotency key of a credit
    reference TEXT NOT NULL,
    balance_id TEXT NOT NULL,
    debit TEXT NOT NULL,
    credit TEXT NOT NULL,
    amount INTEGER NOT NULL,
    -- of a credit: what it was for; of a terminal entry: its state
    note TEXT,
    -- the counters that the amount was spent on, separated by spaces
    counters TEXT
  ) STRICT;
  CREATE UNIQUE INDEX entries_once ON entries (kind, reference);
  CREATE INDEX entries_by_balance ON entries (balance_id, seq);

  -- Running sums of the entries and of capped windows; the audit recomputes them.
  CREATE TABLE totals (
    account TEXT PRIMARY KEY,
    credited INTEGER NOT NULL DEFAULT 0,
    spent INTEGER NOT NULL DEFAULT 0
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE receipts (
    id TEXT PRIMARY KEY,
    at INTEGER NOT NULL,
    balance_id TEXT NOT NULL,
    key_id TEXT NOT NULL,
    body TEXT NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX receipts_by_balance ON receipts (balance_id, at, id);
  CREATE INDEX receipts_by_key ON receipts (key_id, at, id);

  -- Where the journal has been applied up to: see store/journal.
  CREATE TABLE applied (file INTEGER PRIMARY KEY, bytes INTEGER NOT NULL) STRICT;
  `,
];
