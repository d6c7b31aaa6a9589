import { join } from "node:path";

/** How an agent finds the gateway and its own folders, and does nothing that nobody requested. */
export const agentEnvironment = (home: string, url: string, key: string, model: string) => ({
  HOME: home,
  CODEX_HOME: join(home, ".codex"),
  GATEWAY_KEY: key,
  ANTHROPIC_BASE_URL: url,
  ANTHROPIC_AUTH_TOKEN: key,
  ANTHROPIC_SMALL_FAST_MODEL: model,
  CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
  IS_SANDBOX: "1",
});

/** Codex's config.toml, with the gateway as a provider of its own. */
export const codexConfig = (url: string, model: string): string => `
model = "${model}"
model_provider = "gateway"
model_reasoning_effort = "medium"
[model_providers.gateway]
name = "gateway"
base_url = "${url}/v1"
env_key = "GATEWAY_KEY"
wire_api = "responses"
`;

/** What an agent prints, and its exit code, in an environment that has nothing else but the path. */
export async function runAgent(
  command: string[],
  cwd: string,
  env: Readonly<Record<string, string>>,
  timeout: number,
) {
  const child = Bun.spawn(command, {
    cwd,
    env: { PATH: process.env.PATH!, HOME: cwd, ...env },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
    timeout,
  });
  const [out, err, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  return { out, err, code };
}
