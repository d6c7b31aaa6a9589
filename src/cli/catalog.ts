import { type Command, Option } from "@commander-js/extra-typings";
import type { List } from "../api/answers.ts";
import type { EntryAnswer } from "../api/catalog.ts";
import { ABILITIES, findModels } from "../api/find-models.ts";
import { amountUsd, connected, jsonOption, ownerOption, several, wholeNumber } from "./arguments.ts";
import { Client, type OwnerOptions, ownerClient } from "./client.ts";
import { gatewayUrl } from "./connection.ts";
import { type CommandContext, show, table } from "./console.ts";

export function addModels(gateway: Command, context: CommandContext): void {
  const models = gateway
    .command("models")
    .description("Import and update models and prices, and try whether models answer.");
  models
    .command("try")
    .description("Ask each model once at each of its hosts, for a few tokens each; exit code 1 if one fails.")
    .argument("[model...]", "ids of models (default: all)")
    .addOption(new Option("--host <id>", "only at this host; repeatable").argParser(several))
    .addOption(jsonOption())
    .action(async (ids, options) => (await import("./trial.ts")).tryModels(ids, options, context));
  connected(models as Command, "list")
    .description("List the models that are served; if the catalog is not public, use --owner.")
    .addOption(ownerOption())
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
    .action((options) => listModels(options, context));
  connected(models as Command, "sync")
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
    .action(async (source, options) =>
      (await import("./models-sync.ts")).syncModels(source, options, context),
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
    .action(async (options) => (await import("./models.ts")).importModels(options, context));
}

/** The models on offer that match, with prices in USD per million tokens, as the models page finds them. */
async function listModels(
  { search = "", context: tokens, maxInputUsd, can = [], sort = "", ...options }: ModelOptions,
  context: CommandContext,
): Promise<void> {
  const client = ownerClient(options, context) ?? new Client(context, gatewayUrl(options, context), null);
  const { data } = await client.get<List<EntryAnswer>>("/v1/catalog");
  const query = { context: String(tokens ?? ""), price: String(maxInputUsd ?? ""), can: can.join(" ") };
  const found = findModels(data, { search, sort, ...query });
  show(context, options.json, { data: found }, [
    ...table(
      ["id", "input USD", "output USD", "context", "free", "available"],
      found.map(({ id, price, context_length, free, available }) => [
        id,
        price?.input ?? null,
        price?.output ?? null,
        context_length,
        free ? "yes" : "",
        available ? "yes" : "no",
      ]),
    ),
  ]);
}

interface ModelOptions extends OwnerOptions {
  readonly search?: string | undefined;
  readonly context?: number | undefined;
  readonly maxInputUsd?: number | undefined;
  readonly can?: readonly string[] | undefined;
  readonly sort?: string | undefined;
}
