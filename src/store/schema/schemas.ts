import type { StoreConfig } from "../store-config.ts";
import { POSTGRES_SCHEMA } from "./postgres-migrations.ts";
import { type Schema, versionOf } from "./schema-version.ts";
import { SQLITE_SCHEMA } from "./sqlite-migrations.ts";

export const schemaFor = ({ kind }: Pick<StoreConfig, "kind">): Schema =>
  kind === "sqlite" ? SQLITE_SCHEMA : POSTGRES_SCHEMA;

/** The version of the tables that this gateway makes and writes. */
export const schemaVersion = (store: Pick<StoreConfig, "kind">): number => versionOf(schemaFor(store));
