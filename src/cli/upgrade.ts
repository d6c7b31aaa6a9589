import { schemaFor } from "../store/schema/migrations.ts";
import { migrationsFrom, type PresentSchema, versionOf } from "../store/schema/schema-version.ts";
import type { StoreConfig } from "../store/store-config.ts";
import { StoreUnusable } from "../units/errors/bookkeeping.ts";
import { RELEASE } from "../units/version.ts";
import { validConfiguration } from "./config.ts";
import { type CommandContext, counted, messageOf, show } from "./console.ts";
import { CommandFailure, EXIT } from "./failure.ts";
import { openStore } from "./present-store.ts";

/** Says what a start of this release does to the store, without changing it. Exit code 1 if it would not start on it. */
export async function checkUpgrade(
  { json }: { readonly json: boolean },
  context: CommandContext,
): Promise<void> {
  const { store } = await validConfiguration(context);
  const schema = schemaFor(store);
  const own = versionOf(schema);
  await using stored = openStore(store, context, ANSWER_MS);
  const present = await schemaOf(stored, store.kind);
  try {
    const missing = migrationsFrom(present, schema).length;
    const facts = {
      release: RELEASE,
      schema: own,
      oldest_user: schema.oldestUser,
      present_schema: present.version,
      migrations: present.version === 0 ? 0 : missing,
    };
    show(context, json, facts, [
      `This is ${RELEASE}, with schema ${own}. ${stored.where} ${has(present)}.`,
      ...effect(present, own, missing),
      ...(present.version === 0 || missing === 0 ? [] : wayBack(present.version, own, schema.oldestUser)),
    ]);
  } catch (error) {
    if (!(error instanceof StoreUnusable)) throw error;
    throw new CommandFailure(EXIT.found, messageOf(error), "Nothing was changed.");
  }
}

const has = ({ version }: PresentSchema): string => (version === 0 ? "is empty" : `has schema ${version}`);

function effect({ version }: PresentSchema, own: number, missing: number): string[] {
  if (version === 0) return ["The first start makes its tables."];
  if (version > own)
    return ["A newer gateway migrated it, and this one can still use it. A start changes nothing."];
  if (missing === 0) return ["A start changes nothing."];
  return [`The next start runs ${counted(missing, "migration")}.`];
}

/** Which gateways can still use the store afterwards. */
const wayBack = (present: number, own: number, oldestUser: number): string[] =>
  present >= oldestUser
    ? [
        `Gateways of schema ${oldestUser} to ${own - 1} can still use it afterwards: nodes may be replaced one at a time, and put back.`,
      ]
    : [
        `The gateways that use it now (schema ${present}) cannot use it afterwards: make a backup first, and replace all nodes.`,
      ];

async function schemaOf(
  present: ReturnType<typeof openStore>,
  kind: StoreConfig["kind"],
): Promise<PresentSchema> {
  try {
    return await present.schema();
  } catch (error) {
    if (kind === "sqlite") throw error;
    throw new CommandFailure(EXIT.unreachable, messageOf(error), "Check `store` in the configuration.");
  }
}

const ANSWER_MS = 10_000;
