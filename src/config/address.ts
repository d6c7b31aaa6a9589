import { isIP } from "node:net";
import { describe, type Path, type ReportProblem } from "./problem.ts";

/**
 * Whatever is appended begins with a slash, so one at the end, with which `URL` prints an address, is
 * dropped.
 */
export function readAddress(text: string, path: Path, report: ReportProblem): string | undefined {
  const url = URL.canParse(text) ? new URL(text) : null;
  const fine =
    url !== null &&
    (url.protocol === "http:" || url.protocol === "https:") &&
    url.username === "" &&
    url.password === "" &&
    url.hash === "" &&
    !/\s/.test(text);
  if (fine) return withoutEndSlash(text);
  const shown = url !== null && url.password !== "" ? "an address that holds a password" : describe(text);
  report(path, shown, "an http:// or https:// address without a user or a fragment");
  return undefined;
}

/** `127.0.0.1:9090` or `[::1]:9090`; names are not resolved, so that a typing mistake does not open the port elsewhere. */
export function readListenAddress(
  text: string,
  path: Path,
  report: ReportProblem,
): MetricsAddress | undefined {
  const [, six, four, digits] = /^(?:\[([^\]]+)\]|([^:]+)):(\d{1,5})$/.exec(text) ?? [];
  const hostname = six ?? four ?? "";
  const port = Number(digits);
  if (isIP(hostname) !== 0 && port >= 1 && port <= 65_535) return { hostname, port };
  report(path, describe(text), "an IP address of this machine and a port, such as 127.0.0.1:9090");
  return undefined;
}

export interface MetricsAddress {
  readonly hostname: string;
  readonly port: number;
}

export const hostAndPort = ({ hostname, port }: MetricsAddress): string =>
  `${hostname.includes(":") ? `[${hostname}]` : hostname}:${port}`;

/** A link that a customer may follow: a page as above, or a mailbox. */
export function readContact(text: string, path: Path, report: ReportProblem): string | undefined {
  if (!text.startsWith("mailto:")) return readAddress(text, path, report);
  if (/^mailto:[^\s@?]+@[^\s@?]+$/.test(text)) return text;
  report(path, describe(text), "mailto: and an email address");
  return undefined;
}

function withoutEndSlash(address: string): string {
  const query = address.indexOf("?");
  const end = query === -1 ? address.length : query;
  let length = end;
  while (address[length - 1] === "/") length--;
  return address.slice(0, length) + address.slice(end);
}

/** Shown instead of a secret. */
export const MASK = "***";

/** The address without what may be a secret in it: some drivers take the password as a parameter. */
export function withoutPassword(address: string): string {
  if (!URL.canParse(address)) return MASK;
  const url = new URL(address);
  if (url.username === "" && url.password === "" && url.search === "") return address;
  if (url.search !== "") url.search = MASK;
  if (url.username !== "") url.username = MASK;
  if (url.password !== "") url.password = MASK;
  return url.href;
}
