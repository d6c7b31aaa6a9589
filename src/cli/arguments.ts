import {
  Argument,
  type Command,
  type CommandOptions,
  InvalidArgumentError,
  Option,
} from "@commander-js/extra-typings";
import { instantOf } from "../units/instant.ts";
import { MAX_NANO_USD, usdFromNano } from "../units/usd.ts";

/** A command that asks a gateway. It inherits from its parent how errors and output are handled. */
export const connected = (parent: Command, name: string, options: CommandOptions = {}) =>
  parent
    .command(name, options)
    .addOption(urlOption())
    .addOption(tokenOption())
    .addOption(allowHttpOption())
    .addOption(jsonOption());

/** A connected command that owners can use, too. */
export const owned = (parent: Command, name: string, options: CommandOptions = {}) =>
  connected(parent, name, options).addOption(ownerOption());

/** A command that has subcommands, such as `gateway keys`. */
export const groupOf = (parent: Command, name: string, description: string): Command =>
  parent.command(name).description(description) as Command;

/** Options that several commands share, and readers of what is typed. */
export const jsonOption = () => new Option("--json", "print one JSON document, for programs").default(false);

export const urlOption = () =>
  new Option("--url <address>", "the gateway's address (default: GATEWAY_URL, else http://HOST:PORT)");

export const tokenOption = () =>
  new Option(
    "--admin-token <token>",
    "safer in GATEWAY_ADMIN_TOKEN, which other users of the machine cannot see (default: from the data folder)",
  );

export const allowHttpOption = () =>
  new Option("--allow-http", "send credentials to another machine unencrypted").default(false);

export const sinceOption = () => new Option("--since <time>", "a UTC day or a time").argParser(moment);
export const untilOption = () => new Option("--until <time>", "the end, exclusive").argParser(moment);

export const limitOption = () =>
  new Option("--limit <rows>", "show at most this many").argParser(wholeNumber).default(MAX_ROWS);

export const ownerOption = () =>
  new Option(
    "--owner <secret>",
    "act as an owner, with the recovery secret or a session; safer in GATEWAY_OWNER",
  );

export const revokeKeysOption = () =>
  new Option("--revoke-keys", "end every key of the balance, not only those created through the claim");

export const noteOption = () => new Option("--note <text>", "why, for the record");

export const lowCreditArgument = () =>
  new Argument(
    "<usd>",
    "amount in USD, 0 for never, or default for the gateway's own `low_credit_usd`",
  ).argParser(orDefault);

/** More than anybody reads; a script can ask for more. */
const MAX_ROWS = 1_000;

export function wholeNumber(text: string): number {
  if (!/^\d{1,12}$/.test(text)) throw new InvalidArgumentError("It must be a whole number of 0 or more.");
  return Number(text);
}

/** For limits: `none` lifts one. Not null, which commander would take for an option without a value. */
export const orUnlimited =
  <Value>(read: (text: string) => Value) =>
  (text: string): Value | "none" =>
    text === "none" ? text : read(text);

/** The gateway says what is wrong within it. */
export function jsonObject(text: string): object {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value;
  } catch {}
  throw new InvalidArgumentError("It must be a JSON object.");
}

/** A day, or a moment with its zone; a day begins at midnight UTC. */
export function moment(text: string): Date {
  const at = instantOf(text) ?? instantOf(`${text}T00:00Z`);
  if (at !== null) return new Date(at);
  throw new InvalidArgumentError("It must be a day like 2030-01-31, or a time like 2030-01-31T12:00:00Z.");
}

export function amountUsd(text: string): number {
  if (!/^\d{1,7}(\.\d{1,9})?$/.test(text) || Number(text) > MAX_USD) {
    throw new InvalidArgumentError(
      `It must be an amount in USD from 0 to ${MAX_USD.toLocaleString("en-US")} with at most nine decimals, like 12.50.`,
    );
  }
  return Number(text);
}

/** Null: as for everybody. */
const orDefault = (text: string): number | null => (text === "default" ? null : amountUsd(text));

const MAX_USD = usdFromNano(MAX_NANO_USD);

/** `30d`, as a number of days. */
export function daysOf(text: string): number {
  const days = /^(\d{1,5})d$/.exec(text)?.[1];
  if (days === undefined || Number(days) === 0)
    throw new InvalidArgumentError("It must be a number of days, like 30d.");
  return Number(days);
}

/** For an option that may be given several times. */
export const several = (text: string, before: readonly string[] | undefined): readonly string[] => [
  ...(before ?? []),
  text,
];
