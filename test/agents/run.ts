import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { json, sse } from "../fakes/behaviours.ts";
import { type Script, startFakeHost } from "../fakes/host.ts";
import { refusal } from "../fakes/refusals.ts";
import { Folder, GatewayProcess } from "../process/gateway.ts";
import { agentEnvironment, codexConfig, runAgent } from "./agent-process.ts";
import { runCached } from "./cached.ts";
import { runKilled } from "./killed.ts";
import { LOOP_PACKAGES, runLoops } from "./loops.ts";
import { runRefusals } from "./refusals.ts";
import { bodies, NOTE, type ScriptedHost, SIGNATURE, startScriptedHost } from "./scripted-host.ts";

/**
 * The agents themselves, each on a host of the other family: OpenAI's Codex on a host that speaks Messages,
 * Anthropic's Claude Code and opencode on one that speaks Chat Completions. First with models that were named
 * to them; then as they come, with the names and transports that they use by themselves. Then what they show of refusals
 * (refusals.ts), loops of tools over WebSocket (loops.ts) and next to kills (killed.ts), and what long sessions read from caches (cached.ts).
 * Opt-in, because it downloads them:
 *
 *     bun run agents
 *
 * They run with a home folder of their own and, where the machine allows it (Linux, as root), without any
 * network but loopback. Versions are pinned: what these programs send changes from week to week.
 */
const AGENTS = {
  "@openai/codex": "0.169.0",
  "@anthropic-ai/claude-code": "2.1.330",
  "opencode-ai": "1.18.33",
  ...LOOP_PACKAGES,
} as const;
const PYTHON_PACKAGES = ["openai[realtime]==3.54.0", "openai-agents==0.24.0"];
const TASK = "Write the note that the task names, then read it back.";

/** Installs the agents, then starts this script again where there is only loopback. */
async function outside(): Promise<void> {
  const tools = join(tmpdir(), "text-generation-gateway-agents");
  mkdirSync(tools, { recursive: true });
  const packages = Object.entries(AGENTS).map(([name, version]) => `${name}@${version}`);
  if (
    !existsSync(join(tools, "installed")) ||
    readFileSync(join(tools, "installed"), "utf8") !== packages.join()
  ) {
    console.log(`installing ${packages.join(", ")} into ${tools} …`);
    await must(["npm", "install", "--no-audit", "--no-fund", "--prefix", tools, ...packages]);
    await must([process.execPath, join(tools, "node_modules/@anthropic-ai/claude-code/install.cjs")]);
    await must(["python3", "-m", "venv", join(tools, "venv")]);
    await must([join(tools, "venv/bin/pip"), "install", "--quiet", ...PYTHON_PACKAGES]);
    writeFileSync(join(tools, "installed"), packages.join());
  }
  const again = [process.execPath, import.meta.path, "--inside", tools];
  const alone = Bun.which("unshare") !== null && Bun.which("ip") !== null && process.getuid?.() === 0;
  if (!alone) console.log("not root, or no unshare: the agents can reach the network");
  const quoted = again.map((word) => `'${word}'`).join(" ");
  const command = alone ? ["unshare", "-n", "sh", "-c", `ip link set lo up && exec ${quoted}`] : again;
  process.exit(await Bun.spawn(command, { stdio: ["inherit", "inherit", "inherit"] }).exited);
}

async function must(command: string[]): Promise<void> {
  const code = await Bun.spawn(command, { stdio: ["ignore", "inherit", "inherit"] }).exited;
  if (code !== 0) throw new Error(`${command.slice(0, 2).join(" ")} … ended with ${code}`);
}

async function inside(tools: string): Promise<void> {
  const outcomes: boolean[] = [];
  for (const streams of [true, false])
    outcomes.push(...(await runOn(streams, join(tools, "node_modules/.bin"))));
  outcomes.push(...(await runRefusals(tools)));
  outcomes.push(...(await runLoops(tools)));
  outcomes.push(...(await runKilled(tools)));
  outcomes.push(...(await runCached(tools)));
  process.exit(outcomes.every(Boolean) ? 0 : 1);
}

/** Both agents on hosts that stream, or cannot; the agents stream in any case. */
async function runOn(streams: boolean, bin: string): Promise<boolean[]> {
  console.log(streams ? "on hosts that stream:" : "on hosts that cannot stream:");
  const claude = await startScriptedHost("messages");
  const gpt = await startScriptedHost("chat.completions");
  const declining = await startFakeHost(declines);
  const quirks = streams ? "" : ", quirks: { no_stream: true }";
  const folder = new Folder(configOf({ claude: claude.host, gpt: gpt.host, declining }, quirks));
  const gateway = await GatewayProcess.start(folder);
  const { key } = await gateway.keyWith(10);
  const codex = (configuration: string) => (home: string) => {
    mkdirSync(join(home, ".codex"));
    writeFileSync(join(home, ".codex/config.toml"), configuration);
    // As `codex login --with-api-key` leaves it.
    writeFileSync(join(home, ".codex/auth.json"), JSON.stringify({ OPENAI_API_KEY: key }));
    return [join(bin, "codex"), "exec", "--skip-git-repo-check", "--sandbox", "danger-full-access", TASK];
  };
  const claudeCode = (...named: string[]) => [
    join(bin, "claude"),
    "--print",
    ...named,
    "--allowedTools",
    "Bash",
    "--",
    TASK,
  ];
  const { url } = gateway;
  const outcomes = [
    await run("codex", gateway, key, claude, codex(codexConfig(url, "other/claude"))),
    await run("claude-code", gateway, key, gpt, () => claudeCode("--model", "other/gpt")),
    await run(
      "codex on a model that declines",
      gateway,
      key,
      claude,
      codex(codexConfig(url, "declining/codex")),
    ),
    await run("claude-code on a model that declines", gateway, key, gpt, () =>
      claudeCode("--model", "declining/claude-code"),
    ),
    await run("codex as it comes", gateway, key, claude, codex(`openai_base_url = "${url}/v1"\n`)),
    await run("claude-code as it comes", gateway, key, gpt, () => claudeCode()),
    await run("opencode as it comes", gateway, key, gpt, (home) => {
      mkdirSync(join(home, ".config/opencode"), { recursive: true });
      writeFileSync(join(home, ".config/opencode/opencode.json"), opencodeConfig(url, key));
      return [join(bin, "opencode"), "run", TASK];
    }),
  ];
  await gateway.stop();
  await claude.host.close();
  await gpt.host.close();
  await declining.close();
  return outcomes;
}

/** Each in the agent's own language, before any content. */
const declines: Script = (request) => {
  const { events, whole } = refusal(request.path.endsWith("/messages") ? "messages" : "responses");
  return request.json().stream === true ? sse(events) : json(whole);
};

type Address = { readonly url: string };

const configOf = (hosts: Record<"claude" | "gpt" | "declining", Address>, quirks: string): string => `
hosts:
  - { id: claude, base_url: "${hosts.claude.url}/v1", speaks: [messages]${quirks} }
  - { id: gpt, base_url: "${hosts.gpt.url}/v1", speaks: [chat.completions]${quirks} }
  - { id: declining, base_url: "${hosts.declining.url}/v1", speaks: [responses, messages]${quirks} }
models:
${modelOf("declining/codex", "declining", "other/claude")}
${modelOf("declining/claude-code", "declining", "other/gpt")}
${modelOf("other/claude", "claude")}
${modelOf("other/gpt", "gpt")}
${modelOf("openai/gpt-6.1-sol", "claude")}
${[
  "claude-opus-4-8",
  "claude-opus-5",
  "claude-opus-5-5",
  "claude-sonnet-5",
  "claude-sonnet-4-6",
  "claude-haiku-4-5",
  "claude-fable-5",
]
  .map((name) => modelOf(`anthropic/${name}`, "gpt"))
  .join("\n")}
`;

const modelOf = (
  id: string,
  host: string,
  fallback?: string,
): string => `  - id: ${id}${fallback === undefined ? "" : `\n    fallbacks: [${fallback}]`}
    context_length: 400000
    max_output_tokens: 64000
    price: { input: 1, output: 2 }
    routes: [{ host: ${host}, model: ${host}-scripted }]`;

const opencodeConfig = (url: string, key: string): string =>
  JSON.stringify({
    model: "anthropic/claude-sonnet-4-6",
    provider: { anthropic: { options: { baseURL: `${url}/v1`, apiKey: key } } },
    permission: { bash: "allow", edit: "allow" },
    autoupdate: false,
    share: "disabled",
  });

const TIME_MS = 120_000;

async function run(
  agent: string,
  { url }: GatewayProcess,
  key: string,
  scripted: ScriptedHost,
  prepare: (home: string) => string[],
): Promise<boolean> {
  scripted.begin();
  const home = mkdtempSync(join(tmpdir(), `agent-${agent}-`));
  const work = join(home, "work");
  mkdirSync(work);
  const command = prepare(home);
  const env = agentEnvironment(home, url, key, "other/gpt");
  const { out, err, code } = await runAgent(command, work, env, TIME_MS);
  const note = join(work, "note.txt");
  const wrote = existsSync(note) && readFileSync(note, "utf8") === NOTE;
  const done = code === 0 && wrote && scripted.sawNote();
  const thoughts =
    scripted.language === "messages" ? JSON.stringify(bodies(scripted)).includes(SIGNATURE) : null;
  const count = scripted.sent().length;
  console.log(
    `${agent}: ${done ? "done" : "FAILED"}; exit ${code}, note ${wrote ? "written" : "missing"}, result ${scripted.sawNote() ? "seen" : "not seen"} by the host, ${count} requests${thoughts === null ? "" : `, signed thoughts ${thoughts ? "came back" : "did not come back"}`}`,
  );
  if (!done || process.env.AGENTS_VERBOSE !== undefined) console.log(`${out}\n${err}`.slice(-6_000));
  rmSync(home, { recursive: true, force: true });
  return done;
}

if (process.argv.includes("--inside")) await inside(process.argv.at(-1)!);
else await outside();
