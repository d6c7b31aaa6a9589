import type { ChangedFields } from "../../customers/changes/change.ts";
import {
  MAX_OPERATORS,
  type OperatorStore,
  type StoredOperator,
} from "../../customers/operators/operator.ts";
import { isoTime } from "../../units/clock.ts";
import { type Refusal, refused } from "../../units/errors/refusal.ts";
import type { SecretHash } from "../../units/secret-hash.ts";
import { type Batch, changesOne, type Database, finds, inserted, sql } from "../database/database.ts";
import { TableColumns } from "../schema/columns.ts";
import { logging } from "./change-log.ts";

export class SqlOperatorStore implements OperatorStore {
  constructor(private readonly db: Database) {}

  async withToken(hash: SecretHash): Promise<StoredOperator | null> {
    const [row = null] = await this.db
      .read<StoredOperator>`SELECT ${OPERATOR} FROM operators WHERE token_hash = ${hash}`;
    return row;
  }

  list(): Promise<readonly StoredOperator[]> {
    return this.db
      .read<StoredOperator>`SELECT ${OPERATOR} FROM operators ORDER BY name LIMIT ${MAX_OPERATORS}`;
  }

  change(
    name: string,
    decide: Parameters<OperatorStore["change"]>[1],
  ): Promise<StoredOperator | "remove" | Refusal> {
    return this.db.change<StoredOperator | "remove" | Refusal>("operators", async () => {
      const all = await this.list();
      const known = all.find((one) => one.name === name) ?? null;
      const decided = decide(known, all.length - (known === null ? 0 : 1));
      if (refused(decided)) return { result: decided };
      return {
        result: decided,
        statements: [this.db.lock("operators"), writing(known, decided, all.length)],
      };
    });
  }
}

/** A conflict where somebody else has added one, or changed this one. */
function writing(known: StoredOperator | null, next: StoredOperator | "remove", count: number): Batch {
  if (known === null) {
    if (next === "remove") return [];
    return [
      finds(count, sql`SELECT 1 FROM operators`),
      changesOne(sql`INSERT INTO operators ${inserted(OPERATOR.row(next))}`),
      logging(about("operator.added", next.name, {}, fieldsOf(next))),
    ];
  }
  const { name, tokenHash } = known;
  if (next === "remove")
    return [
      changesOne(sql`DELETE FROM operators WHERE name = ${name} AND token_hash = ${tokenHash}`),
      logging(about("operator.removed", name, fieldsOf(known), {})),
    ];
  return [
    changesOne(sql`UPDATE operators SET token_hash = ${next.tokenHash}, expires_at = ${next.expiresAt}
      WHERE name = ${name} AND token_hash = ${tokenHash}`),
    logging(about("operator.rotated", name, fieldsOf(known), fieldsOf(next))),
  ];
}

const about = (
  action: "operator.added" | "operator.removed" | "operator.rotated",
  subject: string,
  before: ChangedFields,
  after: ChangedFields,
) => ({ action, subject, balance: null, before, after });

const fieldsOf = ({ role, expiresAt }: StoredOperator): ChangedFields => ({
  role,
  expires_at: expiresAt === null ? null : isoTime(expiresAt),
});

const OPERATOR = new TableColumns<StoredOperator>("name role tokenHash createdAt expiresAt");
