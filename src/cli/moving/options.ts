import type { Command } from "@commander-js/extra-typings";
import { allowHttpOption, tokenOption, urlOption } from "../arguments.ts";

export const withFiles = (imports: Command, name: string) =>
  imports
    .command(name)
    .option("--out <file>", "a new file for the configuration (default: print it)")
    .option(
      "--env-file <file>",
      "a new file for secrets that the source has in plain text (default: gateway.env next to it)",
    );

/** For sources that have customers. */
export const withCustomers = (imports: Command, name: string) =>
  withFiles(imports, name)
    .option(
      "--customers <file>",
      "create balances, keys and credit at the running gateway, and write their ids and secrets to this file; safe to repeat with the same file",
    )
    .option("--source <name>", "a name for this source, if you import several of one kind", "default")
    .addOption(urlOption())
    .addOption(tokenOption())
    .addOption(allowHttpOption());

export type MovingOptions = ReturnType<ReturnType<typeof withFiles>["opts"]>;
export type CustomerOptions = ReturnType<ReturnType<typeof withCustomers>["opts"]>;
