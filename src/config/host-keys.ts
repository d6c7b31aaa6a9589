import { readFileSync } from "node:fs";
import type { Host, HostKey } from "../catalog/catalog.ts";
import { count, text } from "./kinds.ts";
import type { Path, ReportProblem } from "./problem.ts";
import { joined, listOf, mapOf, setting } from "./setting.ts";

const ROWS = mapOf({
  file: setting(text("the path of a file that holds one key"), undefined, {
    doc: "a file with the key and nothing else; a changed file is read within two seconds, without a restart",
    otherwise: "`env`",
  }),
  env: setting(text("the name of an environment variable", "^[A-Za-z_][A-Za-z0-9_]*$"), undefined, {
    doc: "the name of the environment variable that holds the key",
    otherwise: "`file`",
  }),
  weight: setting(count(1, 1_000), 1, {
    doc: "this key's share of new conversations, relative to the others'",
  }),
  max_concurrent: setting(count(1, 100_000), undefined, {
    doc: "the most requests in flight with this key, on this machine",
    otherwise: "no limit",
  }),
  rpm: setting(count(1), undefined, {
    doc: "the most requests with this key in any minute, on this machine",
    otherwise: "no limit",
  }),
  tpm: setting(count(1), undefined, {
    doc: "the most tokens with this key in any minute, on this machine",
    otherwise: "no limit",
  }),
});

const ONE_SOURCE = "`file` or `env`, and only one of them";

const HOST_KEY = joined(
  ROWS,
  ({ file, env, ...limits }, _, path, report): HostKey => {
    if ((file === undefined) === (env === undefined))
      report(path, file === undefined ? "neither `file` nor `env`" : "both `file` and `env`", ONE_SOURCE);
    const name = env ?? file ?? "";
    return { ...limits, name, from: env === undefined ? "file" : "env", secret: { text: "" } };
  },
  ({ name, from, secret: _, ...limits }) => ({ ...limits, [from]: name }),
);

export const HOST_KEYS = listOf(
  HOST_KEY,
  "a list of keys: { file or env, weight, max_concurrent, rpm, tpm }",
);

/** Each request looks at all of a host's keys. */
export const MAX_KEYS = 32;

/** What is wrong with a host's keys together. */
export function reportKeys({ apiKey, keys = [] }: Host, path: Path, report: ReportProblem): void {
  const own: Path = [...path, "keys"];
  if (keys.length > 0 && apiKey !== null) report(own, "`keys` next to `api_key`", "one of the two");
  if (keys.length > MAX_KEYS) report(own, `${keys.length} keys`, `at most ${MAX_KEYS}`);
  for (const [at, { name, from }] of keys.entries()) {
    if (keys.findIndex((key) => key.name === name) < at)
      report([...own, at, from], JSON.stringify(name), "a key that is not listed before");
  }
}

/** Reads every key's text; none of it is ever part of a problem. */
export function openKeys(
  hosts: readonly Pick<Host, "keys">[],
  env: Readonly<Record<string, string | undefined>>,
  report: ReportProblem,
): void {
  for (const [index, { keys = [] }] of hosts.entries()) {
    for (const [at, { name, from, secret }] of keys.entries()) {
      const read = from === "env" ? keyIn(env[name], "the variable") : readKeyFile(name);
      if ("text" in read) secret.text = read.text;
      else report(["hosts", index, "keys", at, from], `${JSON.stringify(name)}: ${read.problem}`, A_KEY);
    }
  }
}

const A_KEY = "a variable or file that holds one key in printable ASCII";

/** A key's text, or why there is none. */
export type ReadKey = { readonly text: string } | { readonly problem: string };

export function readKeyFile(path: string): ReadKey {
  try {
    return keyIn(readFileSync(path, "utf8"), "the file");
  } catch (error) {
    return { problem: `the file cannot be read (${(error as NodeJS.ErrnoException).code ?? "error"})` };
  }
}

/** Files end in a line break, and editors add one. */
function keyIn(written: string | undefined, where: string): ReadKey {
  if (written === undefined) return { problem: `${where} is not set` };
  const key = written.trim();
  if (key === "") return { problem: `${where} is empty` };
  if (key.length > MAX_KEY_CHARACTERS) return { problem: `${where} has ${key.length} characters` };
  return HEADER_TEXT.test(key)
    ? { text: key }
    : { problem: `${where} has characters that no header can hold` };
}

const MAX_KEY_CHARACTERS = 4_096;
const HEADER_TEXT = /^[\x21-\x7e]*$/;
