import { Command, CommanderError } from "@commander-js/extra-typings";
import { schemaVersion } from "../store/schema/migrations.ts";
import { redacted } from "../units/redacted.ts";
import { RELEASE } from "../units/version.ts";
import { addMoney } from "./balances.ts";
import { addBudgets } from "./budgets.ts";
import { type CommandContext, showFailure } from "./console.ts";
import { EXIT, type ExitCode } from "./failure.ts";
import { addKeys } from "./keys.ts";
import { addModels } from "./models.ts";
import { addImports } from "./moving/commands.ts";
import { addOperators } from "./operators.ts";
import { addOwner } from "./owner.ts";
import { addPayments } from "./payments.ts";
import { addReceipts } from "./receipts.ts";
import { addStarting, addWatching } from "./running.ts";
import { addMargins, addSpending } from "./spending.ts";
import { addSuspensions } from "./suspensions.ts";
import { addUsage } from "./usage.ts";
import { addWebhooks } from "./webhooks.ts";

/**
 * Runs one command line; whatever goes wrong becomes a message and an exit code. The commands are declared next to what
 * they do, and for those that are loaded when they are called in running.ts.
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
  addSpending(gateway, context);
  addUsage(gateway, context);
  addMargins(gateway, context);
  gateway.commandsGroup("For operators:");
  addOperators(gateway, context);
  return gateway;
}

const versionLine = (): string =>
  `${RELEASE} (SQLite schema ${schemaVersion({ kind: "sqlite" })}, PostgreSQL schema ${schemaVersion({ kind: "postgres" })}) on Bun ${Bun.version}`;

const HELP = `
Environment:
  GATEWAY_URL           address of the running gateway (else http://HOST:PORT)
  GATEWAY_ADMIN_TOKEN   the admin token (else the file admin-token in GATEWAY_DATA, ./data)
  GATEWAY_OWNER         the recovery secret of a balance, or a session, for keys and owner

Exit codes:
  0 done   1 a problem was found   2 wrong command line   3 the gateway refused   4 it could not be reached
`;
