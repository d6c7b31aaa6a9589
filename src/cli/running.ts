import type { Command } from "@commander-js/extra-typings";
import { connected, jsonOption, moment, urlOption } from "./arguments.ts";
import type { CommandContext } from "./console.ts";
import { closeNode, listNodes } from "./customers.ts";
import { health } from "./health.ts";
import { audit, listHosts, reload } from "./operations.ts";

/** Commands that read configuration or disk themselves are loaded when they are called: they load half the gateway. */
export function addStarting(gateway: Command, context: CommandContext): void {
  gateway
    .command("start")
    .description(
      "Run the gateway until SIGTERM or Ctrl-C; docs/configuration.md says which configuration it reads.",
    )
    .action(() => context.serve());
  gateway
    .command("doctor")
    .description(
      "Check configuration, data folder, disk, port, hosts and their keys; exit code 1 if a check fails.",
    )
    .addOption(jsonOption())
    .action(async (options) => (await import("./doctor.ts")).doctor(options, context));
  gateway
    .command("upgrade")
    .description(
      "Show what a start of this release would change in the store; exit code 1 if it cannot use the store.",
    )
    .requiredOption("--check", "only show it; the next start upgrades by itself")
    .addOption(jsonOption())
    .action(async (options) => (await import("./upgrade.ts")).checkUpgrade(options, context));
  gateway
    .command("config")
    .description("Check a configuration file.")
    .command("check")
    .description("Read a configuration as a start would; exit code 1 if it has problems.")
    .argument("[file]", "default: GATEWAY_CONFIG, else gateway.yaml here")
    .option("--strict", "fail on warnings, too: for CI")
    .addOption(jsonOption())
    .action(async (file, options) => (await import("./config.ts")).checkConfig(file, options, context));
}

export function addWatching(gateway: Command, context: CommandContext): void {
  connected(gateway, "reload")
    .description("Make the gateway reload its configuration; a bad file changes nothing.")
    .action((options) => reload(options, context));
  const nodes = gateway
    .command("nodes")
    .description("List the gateways that share the database, and close one that is gone.") as Command;
  connected(nodes, "list")
    .description("List the gateways that share the database.")
    .action((options) => listNodes(options, context));
  connected(nodes, "close")
    .description("Free what a node was granted; only if its journal is lost for good.")
    .argument("<node>", "name of the node")
    .action((id, options) => closeNode(id, options, context));
  connected(gateway, "audit")
    .description("Recompute every balance from its entries; exit code 1 if one does not add up.")
    .option("--charges", "also recompute what each receipt charged, from its tokens and rates")
    .action((options) => audit(options, context));
  connected(gateway, "hosts")
    .description("Show hosts with their health, as the gateway sees them.")
    .action((options) => listHosts(options, context));
  gateway
    .command("backup")
    .description("Copy the data folder as it is now, even while the gateway runs.")
    .argument("<folder>", "a new or empty folder")
    .addOption(jsonOption())
    .action(async (folder, options) => (await import("./backup.ts")).backup(folder, options, context));
  addExports(gateway, context);
  gateway
    .command("health")
    .description("Ask the gateway on this machine whether it serves; exit code 4 if not. For containers.")
    .addOption(urlOption())
    .action((options) => health(options, context));
}

function addExports(gateway: Command, context: CommandContext): void {
  const exports = gateway
    .command("export")
    .description("Copy receipts, entries, events and changes into files: docs/selling.md.") as Command;
  connected(exports, "status")
    .description("Show how far the continuous export is, and what waits.")
    .action(async (options) => (await import("./exports.ts")).showExports(options, context));
  exports
    .command("once")
    .description("Write everything in the store of this machine's configuration, now.")
    .requiredOption("--to <target>", "file:/folder or s3://bucket/prefix")
    .option("--since <time>", "only what began since then, in UTC unless it has a time zone", moment)
    .option("--endpoint <url>", "the address of an S3 that is not Amazon's")
    .addOption(jsonOption())
    .action(async (options) => (await import("./exports.ts")).exportOnce(options, context));
}
