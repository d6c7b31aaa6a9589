import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Folder, GatewayProcess } from "../process/gateway.ts";
import { runAgent } from "./agent-process.ts";
import { Line } from "./line.ts";
import { LANGUAGES, startLoopHost } from "./loop-host.ts";

/**
 * Loops of 20 tool calls over WebSocket, by clients as they come, on hosts of each language: OpenAI's clients, its Agents
 * SDKs and Codex, which shortens its conversation on the way. Then the same loop over WebSocket and with requests, with
 * 200 kB of history, on lines of 0, 20 and 80 ms. Part of `bun run agents`.
 */
export const LOOP_PACKAGES = {
  openai: "7.57.0",
  ws: "8.23.0",
  zod: "4.6.7",
  "@openai/agents-core": "0.20.0",
  "@openai/agents-openai": "0.20.0",
} as const;

const CALLS = 20;
const HISTORY = 200_000;
const LOOPS = join(import.meta.dir, "loops");

export async function runLoops(tools: string): Promise<boolean[]> {
  // Programs find their packages next to them.
  for (const client of CLIENTS) copyFileSync(join(LOOPS, client), join(tools, client));
  const host = await startLoopHost(CALLS);
  const gateway = await GatewayProcess.start(new Folder(configOf(host.url)));
  const key = await keyOf(gateway);
  const outcomes: boolean[] = [];
  const loop = async (client: string, language: string, transport: string, ms: number) => {
    const line = await Line.open(Number(new URL(gateway.url).port), ms);
    const args = [`${line.url}/v1`, key, `test/${language}`, transport, String(HISTORY)];
    const { out, err, code } = await runAgent([...commandOf(client, tools), ...args], tools, {}, TIME_MS);
    // Python writes JSON with spaces.
    const figures = out.trim().replaceAll('": ', '":');
    const done = code === 0 && figures.includes(`"calls":${CALLS}`);
    console.log(
      `${client} on ${language}, ${transport}, ${ms} ms: ${done ? "done" : "FAILED"} ${figures}; ${line.up} bytes up`,
    );
    if (!done) console.log(err.slice(-2_000));
    line.close();
    outcomes.push(done);
  };
  for (const client of CLIENTS) for (const language of LANGUAGES) await loop(client, language, "ws", 0);
  for (const ms of [0, 20, 80])
    for (const transport of ["ws", "http"]) await loop("openai.mjs", "messages", transport, ms);
  await gateway.stop();
  await host.close();
  for (const language of LANGUAGES)
    for (const provider of ["openai", "gateway"] as const)
      outcomes.push(await codexLoop(tools, language, provider));
  return outcomes;
}

const CLIENTS = ["openai.mjs", "agents.mjs", "openai_loop.py", "agents_loop.py"];

/** Node has no `WebSocket` that takes headers, which the Agents SDK needs. */
const commandOf = (client: string, tools: string): string[] =>
  client.endsWith(".py")
    ? [join(tools, "venv/bin/python"), join(LOOPS, client)]
    : [process.execPath, join(tools, client)];

async function codexLoop(tools: string, language: string, provider: "openai" | "gateway"): Promise<boolean> {
  const host = await startLoopHost(CALLS, { fullAt: CALLS / 2 });
  const gateway = await GatewayProcess.start(new Folder(configOf(host.url)));
  const key = await keyOf(gateway);
  const line = await Line.open(Number(new URL(gateway.url).port), 0);
  const home = mkdtempSync(join(tmpdir(), "agent-codex-"));
  const folder = join(home, ".codex");
  mkdirSync(folder);
  writeFileSync(join(folder, "config.toml"), codexConfig(provider, `${line.url}/v1`, language));
  writeFileSync(join(folder, "auth.json"), JSON.stringify({ OPENAI_API_KEY: key }));
  const command = [
    join(tools, "node_modules/.bin/codex"),
    "exec",
    "--skip-git-repo-check",
    "--sandbox",
    "danger-full-access",
  ];
  const env = { HOME: home, CODEX_HOME: folder, GATEWAY_KEY: key };
  const { err, code } = await runAgent([...command, "Take all steps."], home, env, TIME_MS);
  const shortened = host.requests.filter((request) => SHORTENING.test(request.text())).length;
  const done = code === 0 && err.includes(`step ${CALLS} done`) && shortened > 0 && line.posts === 0;
  console.log(
    `codex, provider ${provider}, on ${language}: ${done ? "done" : "FAILED"}; ${line.upgrades} upgrades, ${line.posts} POST, shortened ${shortened} times, ${line.up} bytes up`,
  );
  if (!done) console.log(err.slice(-2_000));
  line.close();
  await gateway.stop();
  await host.close();
  rmSync(home, { recursive: true, force: true });
  return done;
}

const SHORTENING = /Summarize this conversation|CONTEXT CHECKPOINT|compaction_trigger/;

const codexConfig = (provider: string, url: string, language: string): string =>
  provider === "openai"
    ? `model_auto_compact_token_limit = 6000\nmodel = "test/${language}"\nopenai_base_url = "${url}"\n`
    : `model_auto_compact_token_limit = 6000
model = "test/${language}"
model_provider = "gateway"
[model_providers.gateway]
name = "gateway"
base_url = "${url}"
env_key = "GATEWAY_KEY"
wire_api = "responses"
supports_websockets = true
`;

async function keyOf(gateway: GatewayProcess): Promise<string> {
  const { id, key, recovery_secret } = await gateway.keyWith(1_000);
  const { status } = await fetch(`${gateway.url}/v1/keys/${id}`, {
    method: "PATCH",
    headers: { authorization: `Bearer ${recovery_secret}`, "content-type": "application/json" },
    body: JSON.stringify({
      rpm_limit: null,
      tpm_limit: null,
      daily_limit_usd: null,
      monthly_limit_usd: null,
    }),
  });
  if (status !== 200) throw new Error(`the key's limits could not be lifted: ${status}`);
  return key;
}

const configOf = (url: string): string => `
hosts:
${LANGUAGES.map((language) => `  - { id: "${language}", base_url: "${url}/v1", speaks: [${language}] }`).join("\n")}
models:
${LANGUAGES.map(
  (language) => `  - id: test/${language}
    context_length: 400000
    max_output_tokens: 64000
    price: { input: 1, output: 2 }
    routes: [{ host: "${language}", model: loop }]`,
).join("\n")}
`;

const TIME_MS = 150_000;
