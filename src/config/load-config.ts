import { isMap, parseDocument } from "yaml";
import type { Config } from "./config.ts";
import { ConfigDocument } from "./document.ts";
import { openKeys } from "./host-keys.ts";
import type { FoundHosts } from "./hosts-from-environment.ts";
import type { ConfigProblem } from "./problem.ts";
import { readConfig } from "./read-config.ts";
import { validate } from "./validate.ts";

/**
 * A configuration file's text as a Config, or everything that is wrong with it, in the order of the file.
 * References are only checked once every value has the right form. `found` is what the environment offers.
 */
export function loadConfig({ file, text, env, found }: ConfigSource): Config | ConfigProblem[] {
  const document = new ConfigDocument(file ?? "", text, env);
  const rows = document.isYaml ? validate(document) : null;
  if (rows === null) return inOrder(document.problems);
  const config = readConfig(file, rows, found, (path, what, expected) =>
    // What came out of the environment may be a secret in the wrong place.
    document.report(path, document.sourceText(path) ?? what, expected),
  );
  // Hosts of the environment have no list of keys, so the file's are all that do, in its order.
  if (document.problems.length === 0)
    openKeys([...config.catalog.hosts.values()], env, (path, what, expected) =>
      document.report(path, what, expected),
    );
  return document.problems.length === 0 ? config : inOrder(document.problems);
}

export interface ConfigSource {
  /** As problems name it; null for the built-in defaults, whose text is empty. */
  readonly file: string | null;
  readonly text: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly found: FoundHosts;
}

/** Whether the file decides the models itself; a text that is no YAML is `loadConfig`'s to report. */
export function listsModels(text: string): boolean {
  const document = parseDocument(text, { logLevel: "silent" });
  return document.errors.length === 0 && isMap(document.contents) && document.has("models");
}

const inOrder = (problems: readonly ConfigProblem[]): ConfigProblem[] =>
  [...problems].sort((a, b) => a.line - b.line || a.column - b.column);
