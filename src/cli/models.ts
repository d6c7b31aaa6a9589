import { type Command, Option } from "@commander-js/extra-typings";
import type { EntryAnswer } from "../api/catalog.ts";
import { ABILITIES, findModels } from "../api/find-models.ts";
import type { List } from "../api/schema.ts";
import { asOperator } from "./actions.ts";
import { amountUsd, connected, groupOf, jsonOption, owned, several, wholeNumber } from "./arguments.ts";
import { Client, ownerClient } from "./client.ts";
import { gatewayUrl } from "./connection.ts";
import { type CommandContext, show, tableOf } from "./console.ts";

export function addModels(gateway: Command, context: CommandContext): void {
  const about = "Import and update models and prices, and try whether models answer.";
  const models = groupOf(gateway, "models", about);
  models
    .command("try")
    .description("Ask each model once at each of its hosts, for a few tokens each; exit code 1 if one fails.")
    .argument("[model...]", "ids of models (default: all)")
    .addOption(new Option("--host <id>", "only at this host; repeatable").argParser(several))
    .addOption(jsonOption())
    .action(async (ids, options) => (await import("./models-try.ts")).tryModels(ids, options, context));
  addList(models, context);
  connected(models, "sync")
    .description(
      "Show how a list of models differs from those served; with --apply, serve it without a restart.",
    )
    .argument("[source]", "a file or an address: rows as in gateway.yaml, or a provider's list of models")
    .option("--host <id>", "the host that the list is for; without a source, the host's own list")
    .addOption(new Option("--match <text>", "only ids that contain this; repeatable").argParser(several))
    .option("--apply", "apply the list in all processes of the store; without this, nothing changes")
    .addOption(
      new Option("--accept <model>", "also apply this model, which was held back; repeatable").argParser(
        several,
      ),
    )
    .option("--undo", "go back to the models from before the last list")
    .action(
      asOperator(context, async (client, source, options) =>
        (await import("./models-sync.ts")).syncModels(client, source, options, context),
      ),
    );
  models
    .command("import")
    .description("Print known models as rows for gateway.yaml.")
    .addOption(
      new Option("--host <id>", "a host; repeatable (default: all whose key is set)").argParser(several),
    )
    .addOption(new Option("--match <text>", "only ids that contain this; repeatable").argParser(several))
    .option("--models-only", "print the rows of models without those of hosts")
    .addOption(jsonOption())
    .action(async (options) => (await import("./models-import.ts")).importModels(options, context));
}

/** The models on offer that match, with prices in USD per million tokens, as the models page finds them. */
function addList(models: Command, context: CommandContext): void {
  owned(models, "list")
    .description("List the models that are served; if the catalog is not public, use --owner.")
    .option("--search <text>", "only those with this in their id or name")
    .option("--context <tokens>", "only those with a context of at least this many tokens", wholeNumber)
    .option(
      "--max-input-usd <usd>",
      "only those whose input costs at most this per million tokens",
      amountUsd,
    )
    .addOption(
      new Option("--can <ability...>", "only those that can do this").choices(
        ABILITIES.flatMap(([ability]) => (/^\w+$/.test(ability) ? [ability] : [])),
      ),
    )
    .addOption(new Option("--sort <by>", "in this order").choices(["input", "output", "context"]))
    .action(async ({ search = "", context: tokens, maxInputUsd, can = [], sort = "", json, ...options }) => {
      const client = ownerClient(options, context) ?? new Client(context, gatewayUrl(options, context), null);
      const { data } = await client.get<List<EntryAnswer>>("/v1/catalog");
      const query = { context: String(tokens ?? ""), price: String(maxInputUsd ?? ""), can: can.join(" ") };
      const found = findModels(data, { search, sort, ...query });
      show(context, json, { data: found }, tableOf(COLUMNS, found));
    });
}

const COLUMNS = {
  id: "id",
  "input USD": ({ price }: EntryAnswer) => price?.input ?? null,
  "output USD": ({ price }: EntryAnswer) => price?.output ?? null,
  context: "context_length",
  free: ({ free }: EntryAnswer) => (free ? "yes" : ""),
  available: ({ available }: EntryAnswer) => (available ? "yes" : "no"),
} as const;
