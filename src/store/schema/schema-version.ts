import { StoreUnusable } from "../../units/errors/bookkeeping.ts";

/** How a database's tables came to be: its first migration makes those of version `first`, each further one the next. */
export interface Schema {
  readonly first: number;
  readonly migrations: readonly string[];
  /**
   * The oldest version whose gateways can still use the tables after the last migration. A migration that only adds
   * (expand) leaves it as it is; one that removes or renames what older gateways use (contract) raises it.
   */
  readonly oldestUser: number;
  /** What keeps it, as an operator calls that. */
  readonly source: string;
  /** How to go back behind an upgrade. */
  readonly wayBack: string;
}

export const versionOf = ({ first, migrations }: Schema): number => first + migrations.length - 1;

/** What a database says of its tables. */
export interface PresentSchema {
  /** 0 where there are none yet. */
  readonly version: number;
  /** `oldestUser` of the gateway that migrated last; null where it did not say. */
  readonly oldestUser: number | null;
}

/** The migrations that a database lacks. None where a newer gateway migrated it and this one can still use it. */
export function migrationsFrom(
  { version: present, oldestUser }: PresentSchema,
  schema: Schema,
): readonly string[] {
  const { first, migrations, source, wayBack } = schema;
  if (present === 0) return migrations;
  if (present > versionOf(schema)) {
    if (oldestUser !== null && oldestUser <= versionOf(schema)) return [];
    throw new StoreUnusable(
      `the ${source} was written by a newer gateway (schema ${present}, this one knows ${versionOf(schema)}). Start that version, or ${wayBack} from before the upgrade.`,
    );
  }
  if (present < first) {
    throw new StoreUnusable(
      `the ${source} was written by a gateway from before the first release (schema ${present}), which this one cannot read: it reads schema ${first} and later.`,
    );
  }
  return migrations.slice(present - first + 1);
}
