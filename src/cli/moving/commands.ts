import type { Command } from "@commander-js/extra-typings";
import { groupOf } from "../arguments.ts";
import type { CommandContext } from "../console.ts";
import { withCustomers, withFiles } from "./options.ts";

export function addImports(gateway: Command, context: CommandContext): void {
  const imports = groupOf(gateway, "import", "Move here from another gateway: docs/moving.md.");
  withFiles(imports, "litellm")
    .description("Convert LiteLLM's configuration, and report what was left out.")
    .argument("<file>", "LiteLLM's config.yaml")
    .action(async (file, options) => (await import("./import.ts")).importLiteLLM(file, options, context));
  withCustomers(imports, "new-api")
    .description(
      "Convert new-api's channels and prices; with --customers, users and tokens become balances and keys.",
    )
    .argument("<database>", "new-api's SQLite file, one-api.db")
    .action(async (file, options) => (await import("./import.ts")).importNewApi(file, options, context));
  withCustomers(imports, "openrouter")
    .description("Make a configuration for OpenRouter's models; with --customers, its keys become keys here.")
    .argument(
      "<export>",
      "the answer of GET /api/v1/keys as a file, or its address (needs OPENROUTER_MANAGEMENT_KEY)",
    )
    .action(async (from, options) => (await import("./import.ts")).importOpenRouter(from, options, context));
}
