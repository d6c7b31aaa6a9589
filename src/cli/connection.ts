import { readFileSync } from "node:fs";
import { join } from "node:path";
import { dataFolderPath } from "../store/data-folder.ts";
import type { CommandContext } from "./console.ts";
import { CommandFailure, EXIT } from "./failure.ts";

/**
 * How a running gateway is reached: flags, else the environment, else what the gateway itself uses by
 * default.
 */
export interface ConnectionOptions {
  readonly url?: string | undefined;
  readonly adminToken?: string | undefined;
  readonly allowHttp?: boolean | undefined;
}

/** Where the gateway listens, without a slash at the end. */
export function gatewayUrl({ url }: ConnectionOptions, { env }: Pick<CommandContext, "env">): string {
  const text = url ?? (env.GATEWAY_URL || localUrl(env));
  if (!/^https?:\/\//.test(text) || !URL.canParse(text)) {
    throw new CommandFailure(
      EXIT.usage,
      `the gateway's address is "${text}", which is not an http:// or https:// address`,
      "Set --url or GATEWAY_URL, for example http://127.0.0.1:8080.",
    );
  }
  return text.replace(/\/+$/, "");
}

/** The same variables with which the gateway is started. */
export function localUrl({ HOST, PORT }: CommandContext["env"]): string {
  const host = HOST === undefined || HOST === "" || HOST === "0.0.0.0" || HOST === "::" ? "127.0.0.1" : HOST;
  return `http://${host.includes(":") ? `[${host}]` : host}:${PORT || "8080"}`;
}

export const dataFolder = ({ env, cwd }: Pick<CommandContext, "env" | "cwd">): string =>
  dataFolderPath(env.GATEWAY_DATA, cwd);

/** The operator's token; it is not sent in the clear to another machine unless that was asked for. */
export function adminToken(
  options: ConnectionOptions,
  url: string,
  context: Pick<CommandContext, "env" | "cwd">,
): string {
  refuseClearText(url, options);
  const token = knownAdminToken(options, context);
  if (token !== null) return token;
  throw new CommandFailure(
    EXIT.usage,
    `there is no admin token: ${tokenPath(context)} does not exist or cannot be read`,
    "Set GATEWAY_ADMIN_TOKEN, or GATEWAY_DATA to the gateway's data folder, or run this where the gateway was started.",
  );
}

/** Null where none is found. */
export function knownAdminToken(
  options: ConnectionOptions,
  context: Pick<CommandContext, "env" | "cwd">,
): string | null {
  const given = options.adminToken ?? context.env.GATEWAY_ADMIN_TOKEN;
  if (given !== undefined && given !== "") return given;
  try {
    return readFileSync(tokenPath(context), "utf8").trim();
  } catch {
    return null;
  }
}

const tokenPath = (context: Pick<CommandContext, "env" | "cwd">): string =>
  join(dataFolder(context), "admin-token");

export function refuseClearText(url: string, { allowHttp = false }: ConnectionOptions): void {
  const { protocol, hostname } = new URL(url);
  if (protocol === "https:" || allowHttp || LOOPBACK.test(hostname)) return;
  throw new CommandFailure(
    EXIT.usage,
    `${url} is another machine, and http:// would send the credential there unencrypted`,
    "Use an https:// address, or --allow-http if you trust the network.",
  );
}

const LOOPBACK = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/;
