import type { Path, Report } from "./problem.ts";
import { describe } from "./validate.ts";

/** Whatever is appended to it begins with a slash. */
export function readAddress(text: string | undefined, path: Path, report: Report): string | null {
  if (text === undefined) return null;
  const url = URL.canParse(text) ? new URL(text) : null;
  const fine =
    url !== null &&
    (url.protocol === "http:" || url.protocol === "https:") &&
    url.username === "" &&
    url.password === "" &&
    url.hash === "" &&
    !text.split("?")[0]!.endsWith("/") &&
    !/\s/.test(text);
  if (fine) return text;
  const shown = url !== null && url.password !== "" ? "an address that holds a password" : describe(text);
  report(path, shown, "an http:// or https:// address without user, fragment or trailing slash");
  return null;
}
