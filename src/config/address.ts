import { isIP } from "node:net";
import type { Path, ReportProblem } from "./problem.ts";
import { describe } from "./validate.ts";

/**
 * Whatever is appended begins with a slash, so one at the end, with which `URL` prints an address, is
 * dropped.
 */
export function readAddress(text: string | undefined, path: Path, report: ReportProblem): string | null {
  if (text === undefined) return null;
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
  return null;
}

/** `127.0.0.1:9090` or `[::1]:9090`; names are not resolved, so that a typing mistake does not open the port elsewhere. */
export function readListenAddress(
  text: string | undefined,
  path: Path,
  report: ReportProblem,
): { readonly hostname: string; readonly port: number } | null {
  if (text === undefined) return null;
  const [, six, four, digits] = /^(?:\[([^\]]+)\]|([^:]+)):(\d{1,5})$/.exec(text) ?? [];
  const hostname = six ?? four ?? "";
  const port = Number(digits);
  if (isIP(hostname) !== 0 && port >= 1 && port <= 65_535) return { hostname, port };
  report(path, describe(text), "an IP address of this machine and a port, such as 127.0.0.1:9090");
  return null;
}

/** A link that a customer may follow: a page as above, or a mailbox. */
export function readContact(text: string | undefined, path: Path, report: ReportProblem): string | null {
  if (text?.startsWith("mailto:") !== true) return readAddress(text, path, report);
  if (/^mailto:[^\s@?]+@[^\s@?]+$/.test(text)) return text;
  report(path, describe(text), "mailto: and an email address");
  return null;
}

function withoutEndSlash(address: string): string {
  const query = address.indexOf("?");
  const end = query === -1 ? address.length : query;
  let length = end;
  while (address[length - 1] === "/") length--;
  return address.slice(0, length) + address.slice(end);
}
