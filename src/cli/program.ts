import { Argument, Command, CommanderError, type CommandOptions, Option } from "@commander-js/extra-typings";
import { BALANCE_STATES } from "../api/admin.ts";
import { BUDGET_WINDOWS } from "../api/budgets.ts";
import { ABILITIES } from "../api/find-models.ts";
import { KEY_ORDERS } from "../api/keys.ts";
import { LISTED_STATES } from "../api/receipts.ts";
import { PERIODS, type Period } from "../api/usage.ts";
import { PAYMENT_STATES } from "../payments/payment.ts";
import { schemaVersion } from "../store/schema/migrations.ts";
import { CHANGE_ACTIONS } from "../units/change-actions.ts";
import { ERROR_CODES } from "../units/errors/codes.ts";
import { SUSPENSION_REASONS } from "../units/errors/suspension.ts";
import { EVENT_KINDS } from "../units/event-kinds.ts";
import { OPERATOR_ROLES } from "../units/operator-roles.ts";
import { redacted } from "../units/redacted.ts";
import { RELEASE } from "../units/version.ts";
import {
  allowHttpOption,
  amountUsd,
  daysOf,
  jsonObject,
  jsonOption,
  limitOption,
  moment,
  orDefault,
  orUnlimited,
  several,
  tokenOption,
  urlOption,
  wholeNumber,
} from "./arguments.ts";
import { changeBudget, createBudget, listBudgets, showBudget } from "./budgets.ts";
import { listModels } from "./catalog.ts";
import { type CommandContext, showFailure } from "./console.ts";
import {
  closeNode,
  listNodes,
  listPayments,
  refundPayment,
  resolvePayment,
  showAccount,
} from "./customers.ts";
import { EXIT, type ExitCode } from "./failure.ts";
import { health } from "./health.ts";
import { changeKey, createKey, listKeys, revokeKey, rotateKey, showKey } from "./keys.ts";
import { MARGINS_BY, showMargins } from "./margins.ts";
import {
  audit,
  credit,
  debit,
  detach,
  listBalances,
  listHosts,
  reload,
  setLowCredit,
  setPriceList,
  setSuspension,
} from "./operations.ts";
import { addOperator, listChanges, listOperators, removeOperator, rotateOperator } from "./operators.ts";
import { deleteAll, endSession, listSessions, replaceRecovery, setOwnLowCredit, undoClaim } from "./owner.ts";
import { listReceipts, rotateSigningKey, showReceipt, verifyReceipt } from "./receipts.ts";
import { showSpending } from "./spending.ts";
import { showUsage } from "./usage.ts";
import {
  addWebhook,
  listEvents,
  listWebhooks,
  removeWebhook,
  rotateWebhook,
  testWebhook,
} from "./webhooks.ts";

/**
 * Runs one command line; whatever goes wrong becomes a message and an exit code. Commands that read configuration or
 * disk themselves are loaded when they are called: they load half the gateway.
 */
export async function run(args: readonly string[], context: CommandContext): Promise<ExitCode> {
  try {
    await program(context).parseAsync([...args], { from: "user" });
    return EXIT.ok;
  } catch (error) {
    // Commander has written its message, or the help that was asked for.
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage;
    return showFailure(context, args.includes("--json"), error);
  }
}

function program(context: CommandContext) {
  const gateway = new Command("gateway")
    .description("Operates a text generation gateway, on this machine or over HTTP.")
    .version(versionLine(), "--version", "print version, build and schemas")
    .exitOverride()
    .configureOutput({
      writeOut: (text) => context.out(text),
      writeErr: (text) => context.err(redacted(text)),
    })
    .showHelpAfterError("Add --help to see the usage.")
    .addHelpText("after", HELP);
  gateway.commandsGroup("To run it:");
  addStarting(gateway, context);
  addModels(gateway, context);
  addImports(gateway, context);
  addWatching(gateway, context);
  gateway.commandsGroup("For customers:");
  addKeys(gateway, context);
  addOwner(gateway, context);
  addMoney(gateway, context);
  addPayments(gateway, context);
  addBudgets(gateway, context);
  addWebhooks(gateway, context);
  addSuspensions(gateway, context);
  addReceipts(gateway, context);
  gateway.commandsGroup("For operators:");
  addOperators(gateway, context);
  return gateway;
}

const versionLine = (): string =>
  `${RELEASE} (SQLite schema ${schemaVersion({ kind: "sqlite" })}, PostgreSQL schema ${schemaVersion({ kind: "postgres" })}) on Bun ${Bun.version}`;

/** A command that asks a gateway. It inherits from its parent how errors and output are handled. */
const connected = (parent: Command, name: string, options: CommandOptions = {}) =>
  parent
    .command(name, options)
    .addOption(urlOption())
    .addOption(tokenOption())
    .addOption(allowHttpOption())
    .addOption(jsonOption());

function addStarting(gateway: Command, context: CommandContext): void {
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

function addModels(gateway: Command, context: CommandContext): void {
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

function addImports(gateway: Command, context: CommandContext): void {
  const imports = gateway
    .command("import")
    .description("Move here from another gateway: docs/moving.md.") as Command;
  imports
    .command("litellm")
    .description("Convert LiteLLM's configuration, and report what was left out.")
    .argument("<file>", "LiteLLM's config.yaml")
    .addOption(outOption())
    .addOption(envFileOption())
    .action(async (file, options) =>
      (await import("./moving/import.ts")).importLiteLLM(file, options, context),
    );
  withCustomers(imports.command("new-api") as Command)
    .description(
      "Convert new-api's channels and prices; with --customers, users and tokens become balances and keys.",
    )
    .argument("<database>", "new-api's SQLite file, one-api.db")
    .action(async (file, options) =>
      (await import("./moving/import.ts")).importNewApi(file, options, context),
    );
  withCustomers(imports.command("openrouter") as Command)
    .description("Make a configuration for OpenRouter's models; with --customers, its keys become keys here.")
    .argument(
      "<export>",
      "the answer of GET /api/v1/keys as a file, or its address (needs OPENROUTER_MANAGEMENT_KEY)",
    )
    .action(async (from, options) =>
      (await import("./moving/import.ts")).importOpenRouter(from, options, context),
    );
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

function addWatching(gateway: Command, context: CommandContext): void {
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

function addKeys(gateway: Command, context: CommandContext): void {
  const keys = gateway
    .command("keys")
    .description("Create, list, show, change and revoke API keys.") as Command;
  const withKeySpec = (name: string) =>
    connected(keys, name)
      .addOption(ownerOption())
      .option("--name <text>", "a name to recognise it by")
      .option("--rpm-limit <n>", "requests per minute, or none", orUnlimited(wholeNumber))
      .option("--tpm-limit <n>", "tokens per minute, or none", orUnlimited(wholeNumber))
      .option("--daily-limit-usd <usd>", "spend per UTC day, or none", orUnlimited(amountUsd))
      .option("--monthly-limit-usd <usd>", "spend per calendar month, or none", orUnlimited(amountUsd))
      .addOption(new Option("--allow-model <id>", "a model it may call; repeatable").argParser(several))
      .addOption(new Option("--budget <name>", "a budget it draws from; repeatable").argParser(several))
      .option(
        "--policy <json>",
        `which hosts may serve it, and where its tags come from, such as '{"region":["eu"],"zdr":true}', or none`,
        orUnlimited(jsonObject),
      )
      .option("--expires-at <time>", "a time in ISO 8601 with a time zone")
      .option("--price-list <name>", "the price list that applies to it, or none; operators only");
  withKeySpec("create")
    .description("Create a key, on a new balance without an account unless --balance or --owner names one.")
    .option("--balance <id>", "the key's balance, bal_…; with --owner, which of the owner's balances")
    .action((options) => createKey(options, context));
  withKeySpec("change")
    .description("Change a key; what you do not name stays as it is.")
    .argument("<key>", "id of a key, key_…, or the key itself")
    .action((id, options) => changeKey(id, options, context));
  connected(keys, "list")
    .description("List the keys of a balance, or of --owner.")
    .argument("[balance]", "id of a balance, bal_…")
    .addOption(ownerOption())
    .option("--search <text>", "only those with this text in name, first characters or id")
    .addOption(
      new Option("--state <state>", "only keys that work, or those that ended").choices(["active", "ended"]),
    )
    .addOption(new Option("--period <period>", "what each key spent in it; days are UTC").choices(PERIODS))
    .addOption(
      new Option("--sort <order>", "most spend in the period, or latest use, first").choices(KEY_ORDERS),
    )
    .addOption(limitOption())
    .action((balance, options) => listKeys(balance, options, context));
  connected(keys, "show")
    .description("Show a key with its use.")
    .argument("<key>", "id of a key, key_…, or the key itself")
    .addOption(ownerOption())
    .action((id, options) => showKey(id, options, context));
  connected(keys, "rotate")
    .description(
      "Replace a key of --owner: the new key is shown once, the old one works for a while (`grace_ms`).",
    )
    .argument("<key>", "id of a key, key_…, or the key itself")
    .addOption(ownerOption())
    .action((id, options) => rotateKey(id, options, context));
  connected(keys, "revoke")
    .description("Revoke a key: its very next request is refused.")
    .argument("<key>", "id of a key, key_…, or the key itself")
    .addOption(ownerOption())
    .action((id, options) => revokeKey(id, options, context));
}

function addOwner(gateway: Command, context: CommandContext): void {
  const owners = gateway
    .command("owner")
    .description(
      "Act as an owner, with the recovery secret or a session, such as to end what leaked.",
    ) as Command;
  const owned = (name: string) =>
    owners
      .command(name)
      .addOption(urlOption())
      .addOption(ownerOption())
      .option("--balance <id>", "with a session: which of the account's balances")
      .addOption(allowHttpOption())
      .addOption(jsonOption());
  owned("recovery")
    .description("Replace the recovery secret of the balance; the new one is shown once.")
    .action((options) => replaceRecovery(options, context));
  owned("low-credit")
    .description("Set the credit below which the owner is notified, by mail and webhook.")
    .addArgument(lowCreditArgument())
    .action((usd, options) => setOwnLowCredit(usd, options, context));
  owned("undo-claim")
    .description("Withdraw a pending claim of the balance, or undo one within 7 days; recovery secret only.")
    .option("--revoke-keys", "end every key of the balance, not only those created through the claim")
    .action((options) => undoClaim(options, context));
  owned("sessions")
    .description("List the account's sessions; with a session only.")
    .action((options) => listSessions(options, context));
  owned("end-session")
    .description("End a session of the account, or all; with a session only.")
    .argument("<session>", "sess_…, or all")
    .action((id, options) => endSession(id, options, context));
  owned("delete")
    .description("Delete the account for good; or, with the recovery secret, a balance without an account.")
    .argument("<id>", "to confirm: acct_… of the session, or bal_… of the recovery secret")
    .action((id, options) => deleteAll(id, options, context));
}

const lowCreditArgument = () =>
  new Argument(
    "<usd>",
    "amount in USD, 0 for never, or default for the gateway's own `low_credit_usd`",
  ).argParser(orDefault);

function addMoney(gateway: Command, context: CommandContext): void {
  connected(gateway, "balances")
    .description("List balances, newest first.")
    .addOption(limitOption())
    .addOption(
      new Option("--below <usd>", "only those with less than this left of their credit").argParser(amountUsd),
    )
    .addOption(new Option("--state <state>", "only such balances").choices(BALANCE_STATES))
    .action((options) => listBalances(options, context));
  connected(gateway, "price-list")
    .description("Set the price list that applies to the keys of a balance.")
    .argument("<balance>", "bal_…, or a key of the balance")
    .argument("<name>", "name of a list of `price_lists`, or none for the models' own prices")
    .action((id, name, options) => setPriceList(id, name, options, context));
  connected(gateway, "low-credit")
    .description("Set the credit below which a balance's owner is notified; owners use `owner low-credit`.")
    .argument("<balance>", "bal_…, or a key of the balance")
    .addArgument(lowCreditArgument())
    .action((id, usd, options) => setLowCredit(id, usd, options, context));
  connected(gateway, "account")
    .description("Show an account with its balances.")
    .argument("<account>", "acct_…, an email address or a wallet")
    .action((who, options) => showAccount(who, options, context));
  connected(gateway, "credit")
    .description("Add prepaid credit, once for each idempotency key.")
    .argument("<target>", "a balance, bal_…, or one of its keys, key_… or whole")
    .addArgument(new Argument("<usd>", "amount in USD").argParser(amountUsd))
    .option("--note <text>", "kept with the credit")
    .option("--idempotency-key <text>", "a credit repeated with the same key is made only once")
    .action((target, usd, options) => credit(target, usd, options, context));
  connected(gateway, "debit")
    .description("Take back credit that is neither spent nor held, once for each idempotency key.")
    .argument("<target>", "a balance, bal_…, or one of its keys, key_… or whole")
    .addArgument(
      new Argument("<usd>", "amount in USD, or all that is available").argParser((text) =>
        text === "all" ? text : amountUsd(text),
      ),
    )
    .option("--note <text>", "kept with the debit; the owner sees it")
    .option("--idempotency-key <text>", "a debit repeated with the same key is made only once")
    .action((target, usd, options) => debit(target, usd, options, context));
}

function addPayments(gateway: Command, context: CommandContext): void {
  const payments = gateway
    .command("payments")
    .description("List and refund payments, and decide about held ones.") as Command;
  connected(payments, "list")
    .description("List payments of all balances, newest first.")
    .addOption(
      new Option("--state <state>", "only these; held ones wait for a decision").choices(PAYMENT_STATES),
    )
    .option("--balance <id>", "only of this balance")
    .addOption(limitOption())
    .action((options) => listPayments(options, context));
  connected(payments, "refund")
    .description("Take back the credit of a payment, and refund the card.")
    .argument("<payment>", "id of a payment, pay_…")
    .action((id, options) => refundPayment(id, options, context));
  connected(payments, "resolve")
    .description("Decide about a payment that is held.")
    .argument("<payment>", "id of a payment, pay_…")
    .addOption(
      new Option(
        "--as <decision>",
        "credited: the amount that arrived becomes credit; refunded: it is paid back",
      )
        .choices(["credited", "refunded"])
        .makeOptionMandatory(),
    )
    .addOption(noteOption())
    .action((id, options) => resolvePayment(id, options, context));
}

function addBudgets(gateway: Command, context: CommandContext): void {
  const budgets = gateway.command("budgets").description("Create, list and change spending caps.") as Command;
  connected(budgets, "list")
    .description("List the budgets of a balance, or of --owner.")
    .argument("[balance]", "id of a balance, bal_…")
    .addOption(ownerOption())
    .action((balance, options) => listBudgets(balance, options, context));
  connected(budgets, "create")
    .description("Create a spending cap that keys can share, as --owner.")
    .argument("<name>", "name of the budget")
    .addOption(ownerOption())
    .addOption(
      new Option("--cap-usd <usd>", "the most that may be spent").argParser(amountUsd).makeOptionMandatory(),
    )
    .addOption(
      new Option("--window <window>", "how long it counts").choices(BUDGET_WINDOWS).makeOptionMandatory(),
    )
    .option("--per <tag>", "cap each value of this tag separately, such as tag:user")
    .action((name, options) => createBudget(name, options, context));
  connected(budgets, "show")
    .description("Show a budget of --owner; if it caps each value of a tag, with the values that spent most.")
    .argument("<name>", "name of the budget")
    .addOption(ownerOption())
    .option("--value <value>", "the value of the tag to show")
    .action((name, options) => showBudget(name, options, context));
  connected(budgets, "change")
    .description("Change a budget's cap or window.")
    .argument("<name>", "name of the budget")
    .option("--balance <id>", "the balance it belongs to, bal_…")
    .addOption(ownerOption())
    .addOption(new Option("--cap-usd <usd>", "the most that may be spent").argParser(amountUsd))
    .addOption(new Option("--window <window>", "how long it counts").choices(BUDGET_WINDOWS))
    .action((name, options) => changeBudget(name, options, context));
}

function addWebhooks(gateway: Command, context: CommandContext): void {
  const webhooks = gateway
    .command("webhooks")
    .description("List and test the endpoints that get events; add and remove an owner's.") as Command;
  connected(webhooks, "list", { isDefault: true })
    .description("List the endpoints of the configuration, of a balance, or of --owner.")
    .option("--balance <id>", "the endpoints of its owner, bal_…")
    .addOption(ownerOption())
    .action((options) => listWebhooks(options, context));
  connected(webhooks, "add")
    .description("Send the events of --owner to an address, and print its secret once.")
    .argument("<url>", "https://…, or mail for the address of the balance's account")
    .addOption(ownerOption())
    .addOption(new Option("--event <event>", "only these; may be repeated (default: all)").argParser(several))
    .option("--slack", "as messages for one of Slack's incoming webhooks")
    .action((url, options) => addWebhook(url, options, context));
  connected(webhooks, "test")
    .description(
      "Send the event webhook.test to an endpoint; exit code 1 if the endpoint does not accept it.",
    )
    .argument("<id>", "wh_…")
    .addOption(ownerOption())
    .action((id, options) => testWebhook(id, options, context));
  connected(webhooks, "rotate")
    .description(
      "Replace the secret of an endpoint of --owner; for 24 hours, deliveries are signed with both.",
    )
    .argument("<id>", "wh_…")
    .addOption(ownerOption())
    .action((id, options) => rotateWebhook(id, options, context));
  connected(webhooks, "remove")
    .description("Remove an endpoint of --owner.")
    .argument("<id>", "wh_…")
    .addOption(ownerOption())
    .action((id, options) => removeWebhook(id, options, context));
  connected(gateway, "events")
    .description("Show what happened to balances in the last 30 days, newest first.")
    .option("--balance <id>", "only to this balance, bal_…")
    .addOption(ownerOption())
    .addOption(new Option("--type <event>", "only such events").choices(EVENT_KINDS))
    .addOption(limitOption())
    .action((options) => listEvents(options, context));
}

function addSuspensions(gateway: Command, context: CommandContext): void {
  connected(gateway, "suspend")
    .description("Suspend an account or balance: every generation is refused.")
    .argument("<id>", "acct_…, bal_…, or a key of the balance")
    .addOption(
      new Option("--reason <reason>", "the reason, which the owner can read")
        .choices(SUSPENSION_REASONS)
        .makeOptionMandatory(),
    )
    .addOption(byOption())
    .addOption(noteOption())
    .action((id, options) => setSuspension(id, options.reason, options, context));
  connected(gateway, "unsuspend")
    .description("Lift a suspension.")
    .argument("<id>", "acct_…, bal_…, or a key of the balance")
    .addOption(
      new Option("--reason <reason>", "lift only the suspension with this reason").choices(
        SUSPENSION_REASONS,
      ),
    )
    .addOption(byOption())
    .addOption(noteOption())
    .action((id, options) => setSuspension(id, options.reason ?? null, options, context, "unsuspend"));
  connected(gateway, "detach")
    .description("Take a claimed balance out of an account; its recovery secret then opens it again.")
    .argument("<account>", "acct_…")
    .argument("<balance>", "bal_…")
    .option("--revoke-keys", "end every key of the balance, not only those created through the claim")
    .action((account, balance, options) => detach(account, balance, options, context));
}

function addReceipts(gateway: Command, context: CommandContext): void {
  const receipts = gateway
    .command("receipt")
    .description("Show the receipt of a request, or verify a signed one.") as Command;
  connected(receipts, "show", { isDefault: true })
    .description("Show the receipt of a request; `gateway receipt rcpt_…` is the same.")
    .argument("<receipt>", "rcpt_…, from the header x-gateway-receipt")
    .addOption(ownerOption())
    .action((id, options) => showReceipt(id, options, context));
  receipts
    .command("verify")
    .description("Verify a signed receipt; exit code 1 if it is not what the gateway signed.")
    .argument(
      "<file>",
      "the answer of GET /v1/receipts/{id} with Accept: application/jose; - for standard input",
    )
    .option("--jwks <address or file>", "the issuer's keys (default: /.well-known/jwks.json of the gateway)")
    .addOption(urlOption())
    .addOption(jsonOption())
    .action((file, options) => verifyReceipt(file, options, context));
  connected(receipts, "rotate-key")
    .description("Sign receipts with a new key; earlier keys still verify what they signed.")
    .action((options) => rotateSigningKey(options, context));
  connected(gateway, "receipts")
    .description("List receipts, newest first, of everybody, of a balance, or of --owner.")
    .addOption(ownerOption())
    .option("--balance <id>", "only of this balance, bal_…")
    .option("--key <id>", "only of this key, key_…")
    .option("--model <id>", "only those that this model served")
    .option("--host <id>", "only those that this host served")
    .addOption(new Option("--state <state>", "only in this state").choices(LISTED_STATES))
    .addOption(new Option("--error <code>", "only those that ended with this error").choices(ERROR_CODES))
    .option("--min-cost-usd <usd>", "only those that cost at least this", amountUsd)
    .option("--since <time>", "a UTC day or a time", moment)
    .option("--until <time>", "the end, exclusive", moment)
    .addOption(limitOption())
    .action((options) => listReceipts(options, context));
  connected(gateway, "spending")
    .description("List the keys that spent most, of everybody or of --owner.")
    .addArgument(new Argument("[period]", "the period; days are UTC").choices(PERIODS).default("week"))
    .addOption(ownerOption())
    .addOption(limitOption())
    .action((period, options) => showSpending(period as Period, options, context));
  connected(gateway, "usage")
    .description("Sum up each key's use of each model from receipts, for billing.")
    .argument("[balance]", "id of a balance, bal_… (default: all balances)")
    .option("--since <time>", "a UTC day or a time (default: the first of the month)", moment)
    .option("--until <time>", "the end, exclusive (default: now)", moment)
    .option("--tag <name>", "a line for each value of a tag of `x-gateway-tags`, such as customer")
    .option("--csv", "as comma-separated values")
    .action((balance, options) => showUsage(balance, options, context));
  connected(gateway, "margins")
    .description("Show what was charged less what hosts charge you, the lowest margin first.")
    .addOption(new Option("--by <what>", "of which each has a line").choices(MARGINS_BY).default("model"))
    .addOption(new Option("--period <period>", "up to now").choices(PERIODS).default("week"))
    .action((options) => showMargins(options, context));
}

function addOperators(gateway: Command, context: CommandContext): void {
  const operators = gateway
    .command("operators")
    .description("Give others an admin token of their own, with a role.") as Command;
  connected(operators, "list", { isDefault: true })
    .description("List who operates the gateway; `gateway operators` is the same.")
    .action((options) => listOperators(options, context));
  connected(operators, "add")
    .description("Add an operator, and print the token once.")
    .argument("<name>", "lower-case letters, digits, `_`, `.` and `-`")
    .addOption(new Option("--role <role>", "what they may do").choices(OPERATOR_ROLES).makeOptionMandatory())
    .addOption(expiresOption())
    .action((name, options) => addOperator(name, options, context));
  connected(operators, "rotate")
    .description("Give an operator another token; the present one ends at once.")
    .argument("<name>")
    .addOption(expiresOption())
    .action((name, options) => rotateOperator(name, options, context));
  connected(operators, "remove")
    .description("Remove an operator; the token is refused from the next request on.")
    .argument("<name>")
    .action((name, options) => removeOperator(name, options, context));
  connected(gateway, "changes")
    .description("Show who changed what, newest first.")
    .option("--balance <id>", "only on this balance, bal_…")
    .addOption(ownerOption())
    .option("--by <author>", "only by this operator, key, account or balance")
    .addOption(new Option("--action <action>", "only such changes").choices(CHANGE_ACTIONS))
    .option("--subject <id>", "only changes of the thing with this id or name")
    .option("--since <time>", "a UTC day or a time", moment)
    .option("--until <time>", "the end, exclusive", moment)
    .addOption(limitOption())
    .action((options) => listChanges(options, context));
}

const expiresOption = () =>
  new Option("--expires <days>", "how long the token works, like 30d; `none` for no end").argParser(
    orUnlimited(daysOf),
  );

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
