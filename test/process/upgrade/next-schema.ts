import { inPostgres, POSTGRES_SCHEMA, SQLITE_SCHEMA } from "../../../src/store/schema/migrations.ts";
import type { Schema } from "../../../src/store/schema/schema-version.ts";

/**
 * Gives this process one more migration, which only adds, as the next release may have it. Tests run on its tables with
 *
 *     bun test --preload ./test/process/upgrade/next-schema.ts test/store test/ledger
 */
const NEXT = `
  ALTER TABLE keys ADD COLUMN next_default INTEGER NOT NULL DEFAULT 7;
  ALTER TABLE balances ADD COLUMN next_note TEXT;
  ALTER TABLE ends ADD COLUMN next_region TEXT;
  ALTER TABLE credits ADD COLUMN next_default INTEGER NOT NULL DEFAULT 7;
  ALTER TABLE nodes ADD COLUMN next_note TEXT;
  ALTER TABLE counters ADD COLUMN next_default INTEGER NOT NULL DEFAULT 7;
  ALTER TABLE grants ADD COLUMN next_note TEXT;
  CREATE TABLE next_rows (id TEXT PRIMARY KEY, amount INTEGER NOT NULL) STRICT;
  CREATE INDEX ends_by_next_region ON ends (next_region);
`;

const add = ({ migrations }: Schema, migration: string) => void (migrations as string[]).push(migration);
add(SQLITE_SCHEMA, NEXT);
add(POSTGRES_SCHEMA, inPostgres(NEXT));
