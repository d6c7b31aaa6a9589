/** What the first release began with: the tables of both databases, in the words of SQLite. */
export const firstTables = (isSqlite: boolean): string => `
  CREATE TABLE balances (
    id TEXT PRIMARY KEY,
    account_id TEXT,
    suspended TEXT,
    recovery_hash TEXT UNIQUE,
    created_at INTEGER NOT NULL,
    -- When it became its account's; the first is the one that a session acts on.
    attached_at INTEGER,
    -- The lineage of the key that was made at set-up; null for a balance that a sign-in made.
    setup_key TEXT,
    -- The recovery secret from before its account replaced it: see accounts/ownership.
    undo_hash TEXT,
    -- When its claim took effect: attached_at may be later, so that an account's balances keep their order.
    claimed_at INTEGER,
    closed_at INTEGER,
    -- When both secrets of a balance were shown to be saved.
    secrets_saved_at INTEGER
  ) STRICT;
  CREATE INDEX balances_by_account ON balances (account_id);
  CREATE INDEX balances_by_time ON balances (created_at, id);
  CREATE UNIQUE INDEX balances_by_undo ON balances (undo_hash) WHERE undo_hash IS NOT NULL;

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
    budgets TEXT NOT NULL,
    -- The account whose session made the key; null for others.
    made_by TEXT
  ) STRICT;
  CREATE INDEX keys_by_balance ON keys (balance_id, created_at, id);
  CREATE INDEX keys_by_lineage ON keys (lineage);

  -- One row a person: an email or a wallet. proved_at is null until somebody signed in with it.
  CREATE TABLE accounts (
    id TEXT PRIMARY KEY,
    email TEXT UNIQUE,
    wallet TEXT UNIQUE,
    suspended TEXT,
    created_at INTEGER NOT NULL,
    proved_at INTEGER,
    -- Its address is erased then, and its balances stay for the books.
    deleted_at INTEGER
  ) STRICT;

  -- Balances offered to an email address whose owner has not confirmed yet.
  CREATE TABLE claims (
    balance_id TEXT PRIMARY KEY REFERENCES balances (id),
    account_id TEXT NOT NULL REFERENCES accounts (id),
    at INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX claims_by_account ON claims (account_id);

  CREATE TABLE sessions (
    hash TEXT PRIMARY KEY,
    account_id TEXT NOT NULL REFERENCES accounts (id),
    expires_at INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX sessions_by_account ON sessions (account_id, expires_at);
  CREATE INDEX sessions_by_end ON sessions (expires_at);

  CREATE TABLE sign_in_links (
    hash TEXT PRIMARY KEY,
    email TEXT NOT NULL,
    claimed TEXT,
    expires_at INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX sign_in_links_by_email ON sign_in_links (email, expires_at);
  CREATE INDEX sign_in_links_by_end ON sign_in_links (expires_at);

  -- Messages that a wallet was asked to sign, until they are used or expire.
  CREATE TABLE wallet_messages (
    hash TEXT PRIMARY KEY,
    address TEXT NOT NULL,
    chain_id INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX wallet_messages_by_end ON wallet_messages (expires_at);

  -- What deleted ends came to, so that every sum can still be recomputed: see store/ledger/fold.
  CREATE TABLE folded (
    balance_id TEXT NOT NULL,
    -- its first instant
    month INTEGER NOT NULL,
    receipts INTEGER NOT NULL,
    charged INTEGER NOT NULL,
    written_off INTEGER NOT NULL,
    lost INTEGER NOT NULL,
    PRIMARY KEY (balance_id, month)
  ) STRICT, WITHOUT ROWID;

  -- counters besides the balance, and allowances in requests
  CREATE TABLE folded_counters (counter TEXT PRIMARY KEY, spent INTEGER NOT NULL) STRICT, WITHOUT ROWID;

  -- Kept by earlier versions only, which remembered here whose credit was low.
  CREATE TABLE low_credit (
    balance_id TEXT PRIMARY KEY REFERENCES balances (id),
    state TEXT NOT NULL,
    until INTEGER NOT NULL,
    credited INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;

  -- Parts of a JSON Web Key; d is the private one, null once a later key has taken its place.
  CREATE TABLE signing_keys (
    number INTEGER PRIMARY KEY,
    created_at INTEGER NOT NULL,
    x TEXT NOT NULL,
    d TEXT
  ) STRICT;

  -- Each reason for a suspension stands until it is lifted; the column suspended has the gravest.
  CREATE TABLE suspension_reasons (
    subject TEXT NOT NULL,
    reason TEXT NOT NULL,
    PRIMARY KEY (subject, reason)
  ) STRICT, WITHOUT ROWID;
  -- See payments/payment. Rows are never deleted.
  CREATE TABLE payments (
    id TEXT PRIMARY KEY,
    rail TEXT NOT NULL,
    external TEXT NOT NULL,
    balance_id TEXT NOT NULL REFERENCES balances (id),
    key_id TEXT,
    state TEXT NOT NULL,
    amount INTEGER NOT NULL,
    payer TEXT,
    "transaction" TEXT,
    reason TEXT,
    "order" TEXT NOT NULL,
    idempotency_key TEXT,
    is_inline INTEGER NOT NULL,
    credited INTEGER NOT NULL,
    lost INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    changed_at INTEGER NOT NULL,
    look_at INTEGER,
    UNIQUE (rail, external)
  ) STRICT;
  CREATE INDEX payments_by_balance ON payments (balance_id, created_at);
  CREATE INDEX payments_by_time ON payments (created_at, id);
  CREATE INDEX payments_due ON payments (look_at) WHERE look_at IS NOT NULL;
  -- What came to nothing gives the key free.
  CREATE UNIQUE INDEX payments_by_key ON payments (balance_id, idempotency_key)
    WHERE idempotency_key IS NOT NULL AND state NOT IN ('expired', 'failed', 'unused', 'rejected');

  -- Payments that a wallet has under way; unneeded payments of a balance that are still watched.
  CREATE INDEX payments_under_way ON payments (payer) WHERE state IN ('created', 'submitted');
  CREATE INDEX payments_unused ON payments (balance_id) WHERE state = 'unused' AND look_at IS NOT NULL;

  -- see customers/keys/run
  CREATE TABLE runs (
    balance_id TEXT NOT NULL,
    name TEXT NOT NULL,
    started_at INTEGER NOT NULL,
    used_at INTEGER NOT NULL,
    cap INTEGER,
    calls INTEGER,
    PRIMARY KEY (balance_id, name)
  ) STRICT, WITHOUT ROWID;

  -- How far each node's journal was booked, stored together with what it says.
  CREATE TABLE shipped (
    node TEXT NOT NULL,
    file INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    PRIMARY KEY (node, file)
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE budgets (
    id TEXT PRIMARY KEY,
    balance_id TEXT NOT NULL REFERENCES balances (id),
    name TEXT NOT NULL,
    cap INTEGER NOT NULL,
    ${isSqlite ? "window" : "period"} TEXT NOT NULL,
    UNIQUE (balance_id, name)
  ) STRICT;

  -- Below zero, an amount was taken back. took_all: all there was, so a repeat must ask for that again.
  CREATE TABLE credits (
    ${isSqlite ? "seq INTEGER PRIMARY KEY," : ""}
    at INTEGER NOT NULL,
    idempotency_key TEXT ${isSqlite ? "NOT NULL UNIQUE" : "PRIMARY KEY"},
    balance_id TEXT NOT NULL,
    amount INTEGER NOT NULL,
    note TEXT,
    took_all ${isSqlite ? "INTEGER NOT NULL DEFAULT 0" : "BOOLEAN NOT NULL DEFAULT FALSE"}
  ) STRICT;
  CREATE INDEX credits_by_balance ON credits (balance_id${isSqlite ? "" : ", at"});

  -- The end of each request, once: one row, because it is written for every one of them. Append-only.
  CREATE TABLE ends (
    ${isSqlite ? "seq INTEGER PRIMARY KEY," : "node TEXT NOT NULL,"}
    receipt TEXT ${isSqlite ? "NOT NULL UNIQUE" : "PRIMARY KEY"},
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
  CREATE INDEX ends_by_balance ON ends (balance_id${isSqlite ? "" : ", at, receipt"});

  -- Who suspended what, when and why; reason is null where a suspension was lifted, and lifted which; null for all. Append-only.
  CREATE TABLE suspensions (
    seq ${isSqlite ? "INTEGER PRIMARY KEY" : "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY"},
    at INTEGER NOT NULL,
    subject TEXT NOT NULL,
    reason TEXT,
    ${isSqlite ? "by" : "by_whom"} TEXT NOT NULL,
    note TEXT,
    lifted TEXT
  ) STRICT;
  CREATE INDEX suspensions_by_subject ON suspensions (subject);
`;

/** The others of SQLite. */
export const FIRST_IN_SQLITE = `
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

  -- Each life of a node has an epoch, which is open until what it was granted is free again.
  CREATE TABLE nodes (name TEXT PRIMARY KEY, epoch INTEGER NOT NULL, open INTEGER NOT NULL) STRICT, WITHOUT ROWID;

  -- What nodes were granted of each counter in their present epochs: see ledger/authority. Totals include what is shipped.
  CREATE TABLE grants (
    counter TEXT NOT NULL,
    node TEXT NOT NULL,
    granted INTEGER NOT NULL,
    used INTEGER NOT NULL,
    number INTEGER NOT NULL,
    heard INTEGER NOT NULL,
    -- the latest that this node has started, or known
    inquiry INTEGER NOT NULL,
    shipped INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (counter, node)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX grants_by_node ON grants (node);

  -- How often a keeper has started: the next one does not remember which changes it announced to nodes.
  CREATE TABLE keeper (one INTEGER PRIMARY KEY CHECK (one = 1), lives INTEGER NOT NULL) STRICT;
`;

/** PostgreSQL's tables, whose leases alone are in its own time, because they are compared with nothing else. */
export const FIRST_IN_POSTGRES = `
  CREATE INDEX ends_by_time ON ends (at);

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
`;
