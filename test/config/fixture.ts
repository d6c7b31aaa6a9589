import type { Config } from "../../src/config/config.ts";
import { foundHosts } from "../../src/config/hosts-from-environment.ts";
import { loadConfig } from "../../src/config/load-config.ts";
import { formatProblems } from "../../src/config/problem.ts";

export const SIMULATED_URL = "http://127.0.0.1:9/v1";
export type Env = Readonly<Record<string, string | undefined>>;

const load = (text: string, env: Env) =>
  loadConfig({
    file: "gateway.yaml",
    text,
    env,
    found: foundHosts({ env, simulatedUrl: SIMULATED_URL, knownModels: () => [] }),
  });

export function goodConfig(text: string, env: Env = {}): Config {
  const config = load(text, env);
  if (Array.isArray(config)) throw new Error(formatProblems(config));
  return config;
}

/** The messages, one a line; empty when the file is fine. */
export function problemsOf(text: string, env: Env = {}): string {
  const config = load(text, env);
  return Array.isArray(config) ? formatProblems(config) : "";
}

/** A small file that is fine, to be spoilt. */
export const GOOD = `hosts:
  - id: openai
    base_url: https://api.openai.com/v1
    speaks: [chat.completions, responses]
    api_key: \${OPENAI_API_KEY}
models:
  - id: openai/gpt-4o-mini
    name: GPT-4o mini
    context_length: 128000
    max_output_tokens: 16384
    price: { input: 0.15, output: 0.60, cache_read: 0.075 }
    routes:
      - { host: openai, model: gpt-4o-mini-2024-07-18 }
`;

export const GOOD_ENV: Env = { OPENAI_API_KEY: "sk-1", NOTHING: "" };
