import { StoreUnusable } from "../../units/errors/bookkeeping.ts";

/** How a database's tables came to be: its first migration makes those of version `first`, each further one the next. */
export interface Schema {
  readonly first: number;
  readonly migrations: readonly string[];
  /** What keeps it, as an operator calls that. */
  readonly source: string;
  /** How to go back behind an upgrade. */
  readonly wayBack: string;
}

export const versionOf = ({ first, migrations }: Schema): number => first + migrations.length - 1;

/** The migrations that a database of this version lacks; 0 for an empty one. */
export function migrationsFrom(present: number, schema: Schema): readonly string[] {
  const { first, migrations, source, wayBack } = schema;
  if (present === 0) return migrations;
  if (present > versionOf(schema)) {
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
