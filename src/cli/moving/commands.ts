import { type Command, Option } from "@commander-js/extra-typings";
import { allowHttpOption, tokenOption, urlOption } from "../arguments.ts";
import type { CommandContext } from "../console.ts";

export function addImports(gateway: Command, context: CommandContext): void {
  const imports = gateway
    .command("import")
    .description("Move here from another gateway: docs/moving.md.") as Command;
  imports
    .command("litellm")
    .description("Convert LiteLLM's configuration, and report what was left out.")
    .argument("<file>", "LiteLLM's config.yaml")
    .addOption(outOption())
    .addOption(envFileOption())
    .action(async (file, options) => (await import("./import.ts")).importLiteLLM(file, options, context));
  withCustomers(imports.command("new-api") as Command)
    .description(
      "Convert new-api's channels and prices; with --customers, users and tokens become balances and keys.",
    )
    .argument("<database>", "new-api's SQLite file, one-api.db")
    .action(async (file, options) => (await import("./import.ts")).importNewApi(file, options, context));
  withCustomers(imports.command("openrouter") as Command)
    .description("Make a configuration for OpenRouter's models; with --customers, its keys become keys here.")
    .argument(
      "<export>",
      "the answer of GET /api/v1/keys as a file, or its address (needs OPENROUTER_MANAGEMENT_KEY)",
    )
    .action(async (from, options) => (await import("./import.ts")).importOpenRouter(from, options, context));
}

/** Options for sources that have customers. */
const withCustomers = (command: Command) =>
  command
    .addOption(outOption())
    .addOption(envFileOption())
    .option(
      "--customers <file>",
      "create balances, keys and credit at the running gateway, and write their ids and secrets to this file; safe to repeat with the same file",
    )
    .option("--source <name>", "a name for this source, if you import several of one kind", "default")
    .addOption(urlOption())
    .addOption(tokenOption())
    .addOption(allowHttpOption());

const outOption = () => new Option("--out <file>", "a new file for the configuration (default: print it)");
const envFileOption = () =>
  new Option(
    "--env-file <file>",
    "a new file for secrets that the source has in plain text (default: gateway.env next to it)",
  );
