import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import type { EpochMs } from "../units/clock.ts";
import type { Config } from "./config.ts";
import { HEADER_TEXT } from "./host-settings.ts";
import { type FoundHosts, foundHosts } from "./hosts-from-environment.ts";
import { listsModels, loadConfig } from "./load-config.ts";
import { findOllama } from "./ollama.ts";
import { type ConfigProblem, ENVIRONMENT } from "./problem.ts";
import { presentPresets } from "./provider-presets.ts";

/**
 * Finds the configuration and reads it: `GATEWAY_CONFIG`, else `gateway.yaml` in the working folder, else the
 * built-in defaults (contract §1). A reload is another call.
 */
export async function findConfig(source: ConfigEnvironment): Promise<FoundConfig | ConfigProblem[]> {
  const { env, cwd } = source;
  const file = readFile(env.GATEWAY_CONFIG, cwd);
  if ("problem" in file) return [file.problem];
  const found = await offer(source, listsModels(file.text));
  const config = loadConfig({ file: file.path, text: file.text, env, found });
  if (Array.isArray(config)) return config;
  const unusable = unusableKeys(config, found);
  return unusable.length > 0 ? unusable : { config, found };
}

/** The environment's keys that no header can hold, such as a placeholder with an ellipsis. */
function unusableKeys({ catalog }: Config, { hosts, sources }: FoundHosts): ConfigProblem[] {
  return hosts
    .filter((host) => catalog.hosts.get(host.id) === host && !HEADER_TEXT.test(host.apiKey ?? ""))
    .map(({ id }) => ({
      file: ENVIRONMENT,
      line: 1,
      column: 1,
      path: sources.find(({ host }) => host === id)?.env ?? id,
      found: "a string with characters that a header cannot hold",
      expected: "a secret in printable ASCII",
    }));
}

export interface ConfigEnvironment {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  /** Some prices change on a day. */
  readonly now: EpochMs;
  /** Base address of the simulated host. */
  readonly simulatedUrl: string;
  readonly fetch?: typeof fetch;
}

export interface FoundConfig {
  readonly config: Config;
  readonly found: FoundHosts;
}

/**
 * The catalogue packages cost 20 MB of memory and 20 ms: they are only loaded when the environment brings
 * hosts whose models the file does not list. Neither is Ollama asked otherwise.
 */
async function offer(source: ConfigEnvironment, modelsListed: boolean): Promise<FoundHosts> {
  const { env, now, simulatedUrl, fetch = globalThis.fetch } = source;
  const ollama = await findOllama(env, modelsListed ? null : fetch);
  const queriedHosts = ollama === null ? [] : [ollama];
  if (modelsListed || presentPresets(env).length === 0) {
    return foundHosts({ env, simulatedUrl, queriedHosts, knownModels: () => [] });
  }
  const catalogue = await import("./model-catalogue.ts");
  return foundHosts({
    env,
    simulatedUrl,
    queriedHosts,
    knownModels: (preset) => catalogue.knownModels(preset, now),
  });
}

const DEFAULT_FILE = "gateway.yaml";
const FILE_BYTES_MAX = 8 * 1024 * 1024;

type ReadFile = { readonly path: string | null; readonly text: string } | { readonly problem: ConfigProblem };

function readFile(named: string | undefined, cwd: string): ReadFile {
  const explicit = named !== undefined && named !== "";
  const path = explicit ? resolve(cwd, named) : join(cwd, DEFAULT_FILE);
  const problem = (found: string): ReadFile => ({
    problem: { file: path, line: 1, column: 1, path: "", found, expected: null },
  });
  try {
    const bytes = readFileSync(path);
    if (bytes.length > FILE_BYTES_MAX)
      return problem(`the file has ${bytes.length} bytes, and may have at most ${FILE_BYTES_MAX}`);
    return { path, text: new TextDecoder("utf-8", { fatal: true }).decode(bytes) };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" && !explicit) return { path: null, text: "" };
    if (code === "ENOENT")
      return problem("there is no such file: correct GATEWAY_CONFIG, or the name in the command");
    if (code === "EISDIR") return problem("this is a folder: name a file");
    if (error instanceof TypeError) return problem("the file is not text in UTF-8");
    return problem(`the file cannot be read (${code ?? error}): let the gateway's user read it`);
  }
}
