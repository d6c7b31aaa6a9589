import type { Command } from "@commander-js/extra-typings";
import type { ReloadAnswer } from "../api/admin.ts";
import type { ExportAnswer } from "../api/exports.ts";
import type { NodeAnswer } from "../api/nodes.ts";
import { asOperator, rowsAt } from "./actions.ts";
import { connected, groupOf, jsonOption, moment, urlOption } from "./arguments.ts";
import { addAudit } from "./audit.ts";
import { path } from "./client.ts";
import type { CommandContext } from "./console.ts";
import { health } from "./health.ts";
import { addHosts } from "./hosts.ts";

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
  groupOf(gateway, "config", "Check a configuration file.")
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
    .action(
      asOperator(context, async (client) => {
        const done = await client.post<ReloadAnswer>("/admin/reload");
        const waiting = done.needs_restart.map((field) => `\`${field}\` was changed, and needs a restart.`);
        return [done, ["The configuration was read again and is in force.", ...waiting]];
      }),
    );
  addNodes(gateway, context);
  addAudit(gateway, context);
  addHosts(gateway, context);
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

function addNodes(gateway: Command, context: CommandContext): void {
  const about = "List the gateways that share the database, and close one that is gone.";
  const nodes = groupOf(gateway, "nodes", about);
  const columns = {
    node: "id",
    state: "state",
    "lease until": "lease_expires_at",
    "reserved USD": "reserved_usd",
    "differs in": ({ differs_in }: NodeAnswer) => differs_in.join(", ") || null,
  } as const;
  const none = "No nodes: on SQLite, the processes of one machine need none.";
  connected(nodes, "list")
    .description("List the gateways that share the database.")
    .action(asOperator(context, (client) => rowsAt(client, "/admin/nodes", columns, none)));
  connected(nodes, "close")
    .description("Free what a node was granted; only if its journal is lost for good.")
    .argument("<node>", "name of the node")
    .action(
      asOperator(context, async (client, id) => {
        const done = await client.post<{ id: string; state: string }>(path`/admin/nodes/${id}/close`);
        return [done, [`${done.id} is closed: what was reserved for it is free again.`]];
      }),
    );
}

function addExports(gateway: Command, context: CommandContext): void {
  const about = "Copy receipts, entries, events and changes into files: docs/selling.md.";
  const exports = groupOf(gateway, "export", about);
  const columns = {
    kind: "kind",
    to: "to",
    "exported through": "exported_through",
    waiting: "waiting",
    "lag s": ({ lag_seconds }: ExportAnswer) => Math.round(lag_seconds),
    problem: "problem",
  } as const;
  const none = "Nothing is exported: `export` in the configuration names where to.";
  connected(exports, "status")
    .description("Show how far the continuous export is, and what waits.")
    .action(asOperator(context, (client) => rowsAt(client, "/admin/exports", columns, none)));
  exports
    .command("once")
    .description("Write everything in the store of this machine's configuration, now.")
    .requiredOption("--to <target>", "file:/folder or s3://bucket/prefix")
    .option("--since <time>", "only what began since then, in UTC unless it has a time zone", moment)
    .option("--endpoint <url>", "the address of an S3 that is not Amazon's")
    .addOption(jsonOption())
    .action(async (options) => (await import("./exports.ts")).exportOnce(options, context));
}
