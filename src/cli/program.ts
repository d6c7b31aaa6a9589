import { Argument, Command, CommanderError, type CommandOptions, Option } from "@commander-js/extra-typings";
import manifest from "../../package.json" with { type: "json" };
import { SUSPENSION_REASONS } from "../units/errors/suspension.ts";
import {
  allowHttpOption,
  amountUsd,
  jsonOption,
  limitOption,
  moment,
  orUnlimited,
  several,
  tokenOption,
  urlOption,
  wholeNumber,
} from "./arguments.ts";
import { type CommandContext, showFailure } from "./console.ts";
import { EXIT, type ExitCode } from "./failure.ts";
import { health } from "./health.ts";
import { changeKey, createKey, listKeys, revokeKey, showKey } from "./keys.ts";
import {
  audit,
  credit,
  debit,
  detach,
  listBalances,
  listHosts,
  reload,
  setSuspension,
} from "./operations.ts";
import { deleteAll, endSession, listSessions, replaceRecovery, undoClaim } from "./owner.ts";
import { rotateSigningKey, showReceipt, verifyReceipt } from "./receipts.ts";
import { showUsage } from "./usage.ts";

/**
 * Runs one command line; whatever goes wrong becomes a message and an exit code. Commands that read configuration or
 * disk themselves are loaded when they are called: they load half the gateway.
 */
export async function run(args: readonly string[], place: CommandContext): Promise<ExitCode> {
  try {
    await program(place).parseAsync([...args], { from: "user" });
    return EXIT.ok;
  } catch (error) {
    // Commander has written its message, or the help that was asked for.
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage;
    return showFailure(place, args.includes("--json"), error);
  }
}

function program(place: CommandContext) {
  const gateway = new Command("gateway")
    .description("Operates a text generation gateway, on this machine or over HTTP.")
    .version(`${manifest.version} on Bun ${Bun.version}`, "--version", "print the version")
    .exitOverride()
    .configureOutput({ writeOut: (text) => place.out(text), writeErr: (text) => place.err(text) })
    .showHelpAfterError("Add --help to see the usage.")
    .addHelpText("after", HELP);
  gateway.commandsGroup("To run it:");
  addStarting(gateway, place);
  addModels(gateway, place);
  addWatching(gateway, place);
  gateway.commandsGroup("For customers:");
  addKeys(gateway, place);
  addOwner(gateway, place);
  addMoney(gateway, place);
  addSuspensions(gateway, place);
  addReceipts(gateway, place);
  return gateway;
}

/** A command that asks a gateway. It inherits from its parent how errors and output are handled. */
const connected = (parent: Command, name: string, options: CommandOptions = {}) =>
  parent
    .command(name, options)
    .addOption(urlOption())
    .addOption(tokenOption())
    .addOption(allowHttpOption())
    .addOption(jsonOption());

function addStarting(gateway: Command, place: CommandContext): void {
  gateway
    .command("start")
    .description(
      "Run the gateway until SIGTERM or Ctrl-C; the configuration is read as docs/configuration.md says.",
    )
    .action(() => place.serve());
  gateway
    .command("doctor")
    .description(
      "Check configuration, data folder, disk, port, hosts and their keys; exit code 1 if a check fails.",
    )
    .addOption(jsonOption())
    .action(async (options) => (await import("./doctor.ts")).doctor(options, place));
  gateway
    .command("config")
    .description("Check a configuration file.")
    .command("check")
    .description("Read a configuration as a start would; exit code 1 if it has problems.")
    .argument("[file]", "default: GATEWAY_CONFIG, else gateway.yaml here")
    .addOption(jsonOption())
    .action(async (file, options) => (await import("./config.ts")).checkConfig(file, options, place));
}

function addModels(gateway: Command, place: CommandContext): void {
  const models = gateway
    .command("models")
    .description("Import known models and prices, and try whether models answer.");
  models
    .command("try")
    .description("Ask each model once at each of its hosts, for a few tokens each; exit code 1 if one fails.")
    .argument("[model...]", "ids of models (default: all)")
    .addOption(new Option("--host <id>", "only at this host; repeatable").argParser(several))
    .addOption(jsonOption())
    .action(async (ids, options) => (await import("./trial.ts")).tryModels(ids, options, place));
  models
    .command("import")
    .description("Print known models as rows for gateway.yaml.")
    .addOption(
      new Option("--host <id>", "a host; repeatable (default: those whose key is set)").argParser(several),
    )
    .addOption(new Option("--match <text>", "only ids that contain this; repeatable").argParser(several))
    .option("--models-only", "print the rows of models without those of hosts")
    .addOption(jsonOption())
    .action(async (options) => (await import("./models.ts")).importModels(options, place));
}

function addWatching(gateway: Command, place: CommandContext): void {
  connected(gateway, "reload")
    .description("Make the gateway reload its configuration; a bad file is refused as a whole.")
    .action((options) => reload(options, place));
  connected(gateway, "audit")
    .description("Recompute every balance from its entries; exit code 1 if one is off.")
    .action((options) => audit(options, place));
  connected(gateway, "hosts")
    .description("Show hosts with their health, as the gateway sees them.")
    .action((options) => listHosts(options, place));
  gateway
    .command("backup")
    .description("Copy the data folder as it is now, even while the gateway runs.")
    .argument("<folder>", "a new or empty folder")
    .addOption(jsonOption())
    .action(async (folder, options) => (await import("./backup.ts")).backup(folder, options, place));
  gateway
    .command("health")
    .description("Ask the gateway on this machine whether it serves; exit code 4 if not. For containers.")
    .addOption(urlOption())
    .action((options) => health(options, place));
}

function addKeys(gateway: Command, place: CommandContext): void {
  const keys = gateway
    .command("keys")
    .description("Create, list, show, change and revoke API keys.") as Command;
  const withKeySpec = (name: string) =>
    connected(keys, name)
      .addOption(ownerOption())
      .option("--name <text>", "a name to tell it by")
      .option("--rpm-limit <n>", "requests per minute, or none", orUnlimited(wholeNumber))
      .option("--tpm-limit <n>", "tokens per minute, or none", orUnlimited(wholeNumber))
      .option("--daily-limit-usd <usd>", "spend per UTC day, or none", orUnlimited(amountUsd))
      .option("--monthly-limit-usd <usd>", "spend per calendar month, or none", orUnlimited(amountUsd))
      .addOption(new Option("--allow-model <id>", "a model it may call; repeatable").argParser(several))
      .addOption(new Option("--budget <name>", "a budget it draws from; repeatable").argParser(several))
      .option("--expires-at <time>", "a time in ISO 8601 with a time zone");
  withKeySpec("create")
    .description("Create a key, on a new balance without an account or on the balance of --owner.")
    .action((options) => createKey(options, place));
  withKeySpec("change")
    .description("Change a key's limits, name or expiry; what is not named stays as it is.")
    .argument("<key>", "id of a key, key_…")
    .action((id, options) => changeKey(id, options, place));
  connected(keys, "list")
    .description("List the keys of a balance, or of --owner.")
    .argument("[balance]", "id of a balance, bal_…")
    .addOption(ownerOption())
    .addOption(limitOption())
    .action((balance, options) => listKeys(balance, options, place));
  connected(keys, "show")
    .description("Show a key with its use.")
    .argument("<key>", "id of a key, key_…")
    .addOption(ownerOption())
    .action((id, options) => showKey(id, options, place));
  connected(keys, "revoke")
    .description("Revoke a key: its very next request is refused.")
    .argument("<key>", "id of a key, key_…")
    .addOption(ownerOption())
    .action((id, options) => revokeKey(id, options, place));
}

function addOwner(gateway: Command, place: CommandContext): void {
  const owners = gateway
    .command("owner")
    .description("Act as an owner: end what leaked, with the recovery secret or a session.") as Command;
  const owned = (name: string) =>
    owners
      .command(name)
      .addOption(urlOption())
      .addOption(ownerOption())
      .option("--balance <id>", "of an account's session, the balance that is meant")
      .addOption(allowHttpOption())
      .addOption(jsonOption());
  owned("recovery")
    .description("Replace the recovery secret of the balance; the new one is shown once.")
    .action((options) => replaceRecovery(options, place));
  owned("undo-claim")
    .description("Withdraw the claim of the balance, or take it back within 7 days; recovery secret only.")
    .option("--revoke-keys", "end every key of the balance, not only what derives from the claim")
    .action((options) => undoClaim(options, place));
  owned("sessions")
    .description("List the account's sessions; with a session only.")
    .action((options) => listSessions(options, place));
  owned("end-session")
    .description("End a session of the account, or all; with a session only.")
    .argument("<session>", "sess_…, or all")
    .action((id, options) => endSession(id, options, place));
  owned("delete")
    .description("Delete the account, or with the recovery secret the balance without one, for good.")
    .argument("<id>", "to confirm: acct_… of the session, or bal_… of the recovery secret")
    .action((id, options) => deleteAll(id, options, place));
}

function addMoney(gateway: Command, place: CommandContext): void {
  connected(gateway, "balances")
    .description("List balances, newest first.")
    .addOption(limitOption())
    .addOption(
      new Option("--below <usd>", "only those with less than this left of their credit").argParser(amountUsd),
    )
    .action((options) => listBalances(options, place));
  connected(gateway, "credit")
    .description("Add prepaid credit, once for each idempotency key.")
    .argument("<target>", "a balance, bal_…, or one of its keys, key_…")
    .addArgument(new Argument("<usd>", "amount in USD").argParser(amountUsd))
    .option("--note <text>", "kept with the credit")
    .option("--idempotency-key <text>", "a credit repeated with the same key is made only once")
    .action((target, usd, options) => credit(target, usd, options, place));
  connected(gateway, "debit")
    .description("Take credit back that is neither spent nor held, once for each idempotency key.")
    .argument("<target>", "a balance, bal_…, or one of its keys, key_…")
    .addArgument(
      new Argument("<usd>", "amount in USD, or all that is available").argParser((text) =>
        text === "all" ? text : amountUsd(text),
      ),
    )
    .option("--note <text>", "kept with the debit; the owner sees it")
    .option("--idempotency-key <text>", "a debit repeated with the same key is made only once")
    .action((target, usd, options) => debit(target, usd, options, place));
}

function addSuspensions(gateway: Command, place: CommandContext): void {
  connected(gateway, "suspend")
    .description("Suspend an account or balance: every generation is refused.")
    .argument("<id>", "acct_… or bal_…")
    .addOption(
      new Option("--reason <reason>", "the reason, which the owner is told")
        .choices(SUSPENSION_REASONS)
        .makeOptionMandatory(),
    )
    .addOption(byOption())
    .addOption(noteOption())
    .action((id, options) => setSuspension(id, options.reason, options, place));
  connected(gateway, "unsuspend")
    .description("Lift a suspension.")
    .argument("<id>", "acct_… or bal_…")
    .addOption(new Option("--reason <reason>", "lift this one only, of several").choices(SUSPENSION_REASONS))
    .addOption(byOption())
    .addOption(noteOption())
    .action((id, options) => setSuspension(id, options.reason ?? null, options, place, "unsuspend"));
  connected(gateway, "detach")
    .description("Take a balance that was claimed out of an account; its recovery secret opens it again.")
    .argument("<account>", "acct_…")
    .argument("<balance>", "bal_…")
    .option("--revoke-keys", "end every key of the balance, not only what derives from the claim")
    .action((account, balance, options) => detach(account, balance, options, place));
}

function addReceipts(gateway: Command, place: CommandContext): void {
  const receipts = gateway
    .command("receipt")
    .description("Show the receipt of a request, or verify a signed one.") as Command;
  connected(receipts, "show", { isDefault: true })
    .description("Show the receipt of a request; `gateway receipt rcpt_…` is the same.")
    .argument("<receipt>", "rcpt_…, from the header x-gateway-receipt")
    .action((id, options) => showReceipt(id, options, place));
  receipts
    .command("verify")
    .description("Verify a signed receipt; exit code 1 if it is not what the gateway signed.")
    .argument(
      "<file>",
      "what GET /v1/receipts/{id} answers to Accept: application/jose; - for standard input",
    )
    .option("--jwks <address or file>", "the issuer's keys (default: /.well-known/jwks.json of the gateway)")
    .addOption(urlOption())
    .addOption(jsonOption())
    .action((file, options) => verifyReceipt(file, options, place));
  connected(receipts, "rotate-key")
    .description("Have receipts signed with a new key; earlier keys still verify what they signed.")
    .action((options) => rotateSigningKey(options, place));
  connected(gateway, "usage")
    .description("Sum up each key's use of each model from receipts, for billing.")
    .argument("[balance]", "id of a balance, bal_… (default: all balances)")
    .option("--since <time>", "a UTC day or a time (default: the first of the month)", moment)
    .option("--until <time>", "the end, itself not included (default: now)", moment)
    .option("--csv", "as comma-separated values")
    .action((balance, options) => showUsage(balance, options, place));
}

const ownerOption = () =>
  new Option(
    "--owner <secret>",
    "act as an owner, with the recovery secret or a session; safer in GATEWAY_OWNER",
  );
const byOption = () => new Option("--by <name>", "who decided it, for the record (default: admin)");
const noteOption = () => new Option("--note <text>", "why, for the record");

const HELP = `
Environment:
  GATEWAY_URL           address of the running gateway (else http://HOST:PORT)
  GATEWAY_ADMIN_TOKEN   the admin token (else the file admin-token in GATEWAY_DATA, ./data)
  GATEWAY_OWNER         the recovery secret of a balance, or a session, for keys and owner

Exit codes:
  0 done   1 a problem was found   2 wrong command line   3 the gateway refused   4 it could not be reached
`;
