import {
  ACCOUNTS,
  CLAIMS,
  FLEET,
  FOLDED,
  GAS_NONCES,
  inPostgres,
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
 * nano-dollars; leases alone are the database's own time, because they are compared with nothing else.
 */
export const POSTGRES_MIGRATIONS: readonly string[] = [
  // 1: nodes, counters and what was granted of them
  `
  CREATE TABLE nodes (
    name TEXT PRIMARY KEY,
    -- one life of its process
    epoch BIGINT NOT NULL,
    -- false once the journal of the epoch was read and its grants are free
    open BOOLEAN NOT NULL,
    -- keys and grants may be used until then
    lease_until TIMESTAMPTZ NOT NULL,
    -- the last change that the node has taken notice of
    seen BIGINT NOT NULL
  );

  -- spent: what ends say. reserved: granted to epochs that are open, less what they have shipped.
  CREATE TABLE counters (
    id TEXT PRIMARY KEY,
    credited BIGINT NOT NULL DEFAULT 0,
    spent BIGINT NOT NULL DEFAULT 0,
    reserved BIGINT NOT NULL DEFAULT 0,
    CHECK (credited >= 0 AND spent >= 0 AND reserved >= 0)
  );

  -- One node's grant of one counter, in all of its epoch: see ledger/authority.
  CREATE TABLE grants (
    counter TEXT NOT NULL,
    node TEXT NOT NULL,
    granted BIGINT NOT NULL,
    shipped BIGINT NOT NULL DEFAULT 0,
    used BIGINT NOT NULL,
    number BIGINT NOT NULL,
    PRIMARY KEY (node, counter),
    CHECK (shipped <= granted)
  );
  CREATE INDEX grants_by_counter ON grants (counter);
  `,
  // 2: the ledger
  `
  CREATE TABLE credits (
    idempotency_key TEXT PRIMARY KEY,
    at BIGINT NOT NULL,
    balance_id TEXT NOT NULL,
    amount BIGINT NOT NULL,
    note TEXT
  );
  CREATE INDEX credits_by_balance ON credits (balance_id, at);

  -- The end of each request, once. Append-only.
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
    -- what the charge, and what one request of an allowance, was counted on; separated by spaces
    counters TEXT NOT NULL,
    allowances TEXT NOT NULL,
    -- the receipt as it is answered, JSON
    body TEXT NOT NULL
  );
  CREATE INDEX ends_by_balance ON ends (balance_id, at, receipt);
  CREATE INDEX ends_by_time ON ends (at);

  -- How far each node's journal was shipped, stored together with what it says.
  CREATE TABLE shipped (
    node TEXT NOT NULL,
    file BIGINT NOT NULL,
    bytes BIGINT NOT NULL,
    PRIMARY KEY (node, file)
  );
  `,
  // 3: balances, keys, recovery secrets, budgets, and the log of their changes
  `
  CREATE TABLE balances (
    id TEXT PRIMARY KEY,
    account_id TEXT,
    suspended TEXT,
    recovery_hash TEXT UNIQUE,
    created_at BIGINT NOT NULL,
    attached_at BIGINT
  );
  CREATE INDEX balances_by_account ON balances (account_id);
  CREATE INDEX balances_by_time ON balances (created_at, id);

${inPostgres(KEYS)}

  CREATE TABLE budgets (
    id TEXT PRIMARY KEY,
    balance_id TEXT NOT NULL REFERENCES balances (id),
    name TEXT NOT NULL,
    cap BIGINT NOT NULL,
    period TEXT NOT NULL,
    UNIQUE (balance_id, name)
  );

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
  `,
  // 4: accounts
  `
${inPostgres(ACCOUNTS)}

${inPostgres(SIGN_IN)}

  CREATE TABLE suspensions (
    seq BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at BIGINT NOT NULL,
    subject TEXT NOT NULL,
    reason TEXT,
    by_whom TEXT NOT NULL,
    note TEXT
  );
  CREATE INDEX suspensions_by_subject ON suspensions (subject);
  `,
  // 5: retention of receipts
  inPostgres(FOLDED),
  // 6: nodes without a journal
  `
  -- A node without one never comes back under its name: what it left open is in holds.
  ALTER TABLE nodes ADD COLUMN has_journal BOOLEAN NOT NULL DEFAULT TRUE;

  -- Streams of such nodes that are under way.
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
  // 7: the limits of a chain of keys, which grants are held against
  `
  CREATE INDEX keys_by_lineage ON keys (lineage);
  `,
  // 8: credit that is taken back
  `
  ALTER TABLE credits ADD COLUMN took_all BOOLEAN NOT NULL DEFAULT FALSE;
  `,
  // 9: owners who are told that credit runs low
  inPostgres(LOW_CREDIT),
  // 10: inquiries after what nobody knows to be unused; see ledger/authority
  `
  ALTER TABLE counters ADD COLUMN inquiries BIGINT NOT NULL DEFAULT 0;
  -- the latest that was answered; null for a gateway that knows of none yet, and is not waited for
  ALTER TABLE grants ADD COLUMN heard BIGINT;
  `,
  // 11: who may claim a balance, who may take it back, and what owners can end; see sqlite/migrations
  `
  ALTER TABLE balances ADD COLUMN setup_key TEXT;
  UPDATE balances SET setup_key = (
    SELECT id FROM keys WHERE balance_id = balances.id AND lineage = id AND created_at >= balances.created_at
    ORDER BY created_at, id LIMIT 1
  ) WHERE recovery_hash IS NOT NULL;
  ALTER TABLE balances ADD COLUMN undo_hash TEXT UNIQUE;
  ALTER TABLE balances ADD COLUMN claimed_at BIGINT;
  UPDATE balances SET claimed_at = attached_at WHERE setup_key IS NOT NULL;
  ALTER TABLE balances ADD COLUMN closed_at BIGINT;

  ALTER TABLE accounts ADD COLUMN deleted_at BIGINT;
  `,
  // 12: budgets are counted in all windows; see sqlite/migrations
  `
  INSERT INTO folded_counters (counter, spent)
    WITH drawn AS (
      SELECT at, charged, 'budget:' || split_part(word, ':', 2) AS budget
      FROM ends, unnest(string_to_array(counters, ' ')) AS word
      WHERE charged > 0 AND counters LIKE '%budget:%' AND word LIKE 'budget:%'
    ), counted AS (
      SELECT budget || ':day:' || (at - at % 86400000) AS counter, charged FROM drawn
      UNION ALL SELECT budget || ':week:' || (at - (at - 345600000) % 604800000), charged FROM drawn
      UNION ALL SELECT budget || ':month:' ||
        extract(epoch FROM date_trunc('month', to_timestamp(at / 1000) AT TIME ZONE 'UTC'))::bigint * 1000, charged
        FROM drawn
      UNION ALL SELECT budget || ':total:0', charged FROM drawn
      UNION ALL SELECT 'budget:' || split_part(counter, ':', 2) || ':total:0', spent
        FROM folded_counters WHERE counter LIKE 'budget:%'
    )
    SELECT counter, sum(charged) FROM counted GROUP BY counter;
  INSERT INTO counters (id, spent) SELECT counter, spent FROM folded_counters WHERE counter LIKE 'budget:%:%:%';
  `,
  // 13: keys that work only while the balance is the account's that made them; see sqlite/migrations
  `
  ALTER TABLE keys ADD COLUMN made_by TEXT;
  `,
  // 14: inquiries are found by polling, too; see ledger/authority
  `
  ALTER TABLE counters ADD COLUMN inquired_at TIMESTAMPTZ;
  CREATE INDEX counters_by_inquiry ON counters (inquired_at) WHERE inquired_at IS NOT NULL;
  `,
  // 15: keys that receipts are signed with
  inPostgres(SIGNING_KEYS),
  // 16: payments
  inPostgres(PAYMENTS),
  // 17: runs
  inPostgres(RUNS),
  // 18: payments at a time
  inPostgres(PAYMENTS_AT_A_TIME),
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
];
