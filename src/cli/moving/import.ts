import { closeSync, existsSync, fsyncSync, openSync, renameSync, rmSync, writeSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { systemClock } from "../../units/clock.ts";
import { formatUsd } from "../../units/usd.ts";
import { adminClient } from "../client.ts";
import { refuseClearText } from "../connection.ts";
import { type CommandContext, counted, printable, readText } from "../console.ts";
import { CommandFailure, EXIT } from "../failure.ts";
import { yamlOf } from "../models-import.ts";
import type { MovedCustomer } from "./customer.ts";
import { makeCustomers } from "./customers.ts";
import { Draft } from "./draft.ts";
import { KnownModels } from "./known-models.ts";
import { readLiteLLM } from "./litellm.ts";
import { Mapping } from "./mapping.ts";
import { addOpenRouter, readKeys, rowsOf } from "./openrouter.ts";
import type { CustomerOptions, MovingOptions } from "./options.ts";
import { Secrets } from "./secrets.ts";

export async function importLiteLLM(
  file: string,
  options: MovingOptions,
  context: CommandContext,
): Promise<void> {
  const draft = newDraft();
  readLiteLLM(readText(resolve(context.cwd, file)), file, draft);
  writeConfiguration(draft, options, context);
}

export async function importNewApi(
  file: string,
  options: CustomerOptions,
  context: CommandContext,
): Promise<void> {
  const draft = newDraft();
  const { readChannels, readNewApi, readUsers } = await import("./new-api.ts");
  const source = readNewApi(resolve(context.cwd, file));
  readChannels(source, draft);
  const customers = readUsers(source, draft, systemClock.now());
  await writeOrMake(draft, customers, `new-api:${options.source}`, options, context);
}

export async function importOpenRouter(
  from: string,
  options: CustomerOptions,
  context: CommandContext,
): Promise<void> {
  const draft = newDraft();
  const rows = /^https?:/.test(from)
    ? await fetchedKeys(from, context)
    : rowsOf(readText(resolve(context.cwd, from)), from);
  addOpenRouter(draft);
  const customers = readKeys(rows, draft, systemClock.now());
  await writeOrMake(draft, customers, `openrouter:${options.source}`, options, context);
}

const MAX_PAGES = 1_000;

/** OpenRouter gives a hundred keys a page. */
async function fetchedKeys(url: string, { env, fetch }: CommandContext): Promise<unknown[]> {
  const key = env.OPENROUTER_MANAGEMENT_KEY;
  if (!key)
    throw new CommandFailure(
      EXIT.usage,
      "OPENROUTER_MANAGEMENT_KEY is not set",
      "Set it to a management key of OpenRouter, which lists keys.",
    );
  refuseClearText(url, {});
  const rows: unknown[] = [];
  for (let page = 0; page < MAX_PAGES; page++) {
    const next = new URL(url);
    next.searchParams.set("offset", String(rows.length));
    const answer = await fetch(next, { headers: { authorization: `Bearer ${key}` }, redirect: "manual" });
    if (!answer.ok) throw new CommandFailure(EXIT.refused, `${url} answered ${answer.status}`);
    const more = rowsOf(await answer.text(), url);
    if (more.length === 0) return rows;
    rows.push(...more);
  }
  throw new CommandFailure(EXIT.found, `${url} has more than ${MAX_PAGES} pages of keys`);
}

/** Without `--customers` the configuration, with it those who use it: the gateway has to run on the one to make the others. */
async function writeOrMake(
  draft: Draft,
  customers: readonly MovedCustomer[],
  source: string,
  options: CustomerOptions,
  context: CommandContext,
): Promise<void> {
  const keys = customers.reduce((sum, customer) => sum + customer.keys.length, 0);
  const credit = customers.reduce((sum, customer) => sum + BigInt(customer.credit), 0n);
  const what = `${counted(customers.length, "balance")} with ${counted(keys, "key")} and ${formatUsd(credit).replace("$", "")} USD of credit`;
  if (options.customers === undefined) {
    writeConfiguration(draft, options, context);
    if (customers.length > 0)
      context.err(
        `\n${what}: \`--customers FILE\` makes them, once the gateway runs with this configuration.\n`,
      );
    return;
  }
  const file = resolve(context.cwd, options.customers);
  const client = adminClient(options, context);
  const made = await makeCustomers(customers, new Mapping(file, source), client, context);
  report(draft, context);
  context.err(
    `\n${what}; ${made} of the balances were made now. ${file} has their ids and secrets, which nothing else has: hand them out, then remove it.\n`,
  );
}

const newDraft = (): Draft => new Draft(new KnownModels(systemClock.now()), new Secrets());

/** The configuration, its secrets and the report of what it does not carry, which goes to standard error. */
function writeConfiguration(draft: Draft, options: MovingOptions, context: CommandContext): void {
  const { hosts, models } = draft.counts;
  if (models === 0) {
    report(draft, context);
    throw new CommandFailure(EXIT.found, "no model could be carried over, so no configuration was written");
  }
  const out = options.out === undefined ? null : resolve(context.cwd, options.out);
  const isSecret = draft.secrets.found.size > 0;
  const folder = out === null ? context.cwd : dirname(out);
  const envFile =
    options.envFile === undefined ? join(folder, "gateway.env") : resolve(context.cwd, options.envFile);
  for (const file of [...(out === null ? [] : [out]), ...(isSecret ? [envFile] : [])]) refuseExisting(file);
  if (isSecret) writeNew(envFile, draft.secrets.file(), 0o600);
  const yaml = yamlOf(draft.rows());
  if (out === null) context.out(yaml);
  else writeNew(out, yaml, 0o644);
  context.err(
    `${counted(hosts, "host")} and ${counted(models, "model")}${out === null ? "" : ` in ${out}`}. Check the prices against the hosts' own lists before you sell at them.\n`,
  );
  if (isSecret)
    context.err(
      `${counted(draft.secrets.found.size, "secret")} in ${envFile}, which you alone can read: load it with \`set -a; . ${envFile}\`, or docker's --env-file.\n`,
    );
  report(draft, context);
}

function report({ notes, leftOut }: Draft, { err }: CommandContext): void {
  const section = (title: string, lines: readonly string[]) => {
    if (lines.length > 0)
      err(`\n${title} (${lines.length}):\n${lines.map((line) => `  ${printable(line)}\n`).join("")}`);
  };
  section("Carried otherwise", notes);
  section("Left out", leftOut);
  if (leftOut.length === 0) err("\nNothing was left out.\n");
}

function refuseExisting(file: string): void {
  if (existsSync(file))
    throw new CommandFailure(
      EXIT.usage,
      `${file} exists, and nothing was written`,
      "Name another file, or move it away.",
    );
}

/** Whole and durable before it has its name: whatever ends an import leaves no half of a configuration. */
function writeNew(file: string, text: string, mode: number): void {
  const part = `${file}.part`;
  rmSync(part, { force: true });
  const handle = openSync(part, "wx", mode);
  try {
    writeSync(handle, text);
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
  renameSync(part, file);
}
