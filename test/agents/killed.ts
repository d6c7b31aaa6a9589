import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "../../bench/processes.ts";
import type { ReceiptAnswer } from "../../src/api/receipts.ts";
import { resetBeforeHead, sse, status } from "../fakes/behaviours.ts";
import { gate } from "../fakes/gate.ts";
import { startFakeHost } from "../fakes/host.ts";
import { until } from "../fakes/until.ts";
import { ADMIN, Folder, GatewayProcess } from "../process/gateway.ts";
import { agentEnvironment, codexConfig, runAgent } from "./agent-process.ts";
import { LANGUAGES, type Language, startLoopHost } from "./loop-host.ts";

/**
 * Loops of tools by an agent of each language on hosts of each language. The model's first host fails before its first
 * token, and the gateway is killed twice in the middle of a stream. All steps are done, and the bill is exact. Part of
 * `bun run agents`; alone, with the agents in `<folder>/node_modules`:
 *
 *     bun test/agents/killed.ts <folder>
 */
export async function runKilled(tools: string): Promise<boolean[]> {
  const outcomes: boolean[] = [];
  for (const agent of AGENTS)
    for (const language of LANGUAGES) outcomes.push(await killedLoop(agent, language, tools));
  return outcomes;
}

const AGENTS = ["codex", "claude", "opencode"] as const;
type Agent = (typeof AGENTS)[number];

const CALLS = 8;
/** The streams in the middle of which the gateway is killed. */
const KILLED = [3, 6];
const FAILURES = [resetBeforeHead(), status(503), status(429), sse([], { end: "cut" })];

async function killedLoop(agent: Agent, language: Language, tools: string): Promise<boolean> {
  const reached = KILLED.map(() => gate());
  const killed = KILLED.map(() => gate());
  let streams = 0;
  const midStream = () => {
    const n = KILLED.indexOf(++streams);
    reached[n]?.open();
    return killed[n]?.passed;
  };
  const host = await startLoopHost(CALLS, { midStream });
  const failing = await startFakeHost((_, n) => FAILURES[n % FAILURES.length]!);
  const folder = new Folder(configOf(failing.url, host.url, language));
  const port = { PORT: String(freePort()) };
  let gateway = await GatewayProcess.start(folder, port);
  const { key, balance_id } = await gateway.keyWith(CREDIT_USD);
  const ended = run(agent, gateway.url, key, tools);
  let kills = 0;
  for (const [n, { passed }] of reached.entries()) {
    if ((await Promise.race([passed, ended])) !== undefined) break;
    await until(() => isHeld(gateway));
    await gateway.kill();
    kills += 1;
    gateway = await GatewayProcess.start(folder, port);
    killed[n]!.open();
  }
  const { code, output } = await ended;
  const wrong = await wrongBills(gateway, balance_id);
  const sawAll = host.requests.some((request) => request.text().includes(`step ${CALLS} done`));
  const done = code === 0 && sawAll && kills === KILLED.length && wrong.length === 0;
  console.log(
    `${agent} on ${language}: ${done ? "done" : "FAILED"}; exit ${code}, ${kills} kills, ${failing.requests.length} attempts failed, ${host.requests.length} were served, ${wrong.length === 0 ? "the bill is exact" : wrong.join("; ")}`,
  );
  if (!done) console.log(output.slice(-3_000));
  await gateway.stop();
  await Promise.all([host.close(), failing.close()]);
  folder.remove();
  return done;
}

/** From then on a stream has a receipt, whatever happens to the process. */
async function isHeld(gateway: GatewayProcess): Promise<boolean> {
  const { text } = await gateway.get("/metrics", ADMIN);
  return !text.includes("\ngateway_open_holds 0\n") && text.includes("\ngateway_journal_undurable 0\n");
}

/** What the books say other than the host's answers come to. */
async function wrongBills(gateway: GatewayProcess, balance: string): Promise<string[]> {
  const wrong: string[] = [];
  const { data } = (await gateway.get(`/admin/balances/${balance}/receipts?limit=${MAX_RECEIPTS}`, ADMIN))
    .json;
  let spent = 0;
  let recovered = 0;
  for (const { id, state, cost_usd } of data as ReceiptAnswer[]) {
    const nano = Math.round(cost_usd * 1e9);
    spent += nano;
    if (state === "recovered") recovered += 1;
    // So little had arrived that a crash writes it off.
    const expected = state === "settled" ? ANSWER_NANO : 0;
    if (nano !== expected) wrong.push(`${id} is ${state} at ${nano}`);
  }
  if (recovered !== KILLED.length) wrong.push(`${recovered} receipts are of killed streams`);
  const { balance_usd, held_usd } = (await gateway.get(`/admin/balances/${balance}`, ADMIN)).json;
  const left = Math.round(balance_usd * 1e9);
  if (left !== CREDIT_USD * 1e9 - spent || held_usd !== 0)
    wrong.push(`${left} left of ${spent} spent, ${held_usd} held`);
  const { json, text } = await gateway.audit();
  if (json.ok !== true) wrong.push(text);
  return wrong;
}

const CREDIT_USD = 100;
const MAX_RECEIPTS = 100;
/** 900 tokens in and 40 out, as the loop's host reports of every answer. */
const ANSWER_NANO = 900 * 1_000 + 40 * 2_000;

async function run(agent: Agent, url: string, key: string, tools: string) {
  const home = mkdtempSync(join(tmpdir(), `agent-killed-${agent}-`));
  for (const folder of ["work", ".codex", ".config/opencode"])
    mkdirSync(join(home, folder), { recursive: true });
  writeFileSync(join(home, ".codex/config.toml"), codexConfig(url, MODEL));
  writeFileSync(join(home, ".config/opencode/opencode.json"), opencodeConfig(url, key));
  const [program, ...words] = COMMANDS[agent];
  const command = [join(tools, "node_modules/.bin", program), ...words, "Take all steps."];
  const env = agentEnvironment(home, url, key, MODEL);
  const { out, err, code } = await runAgent(command, join(home, "work"), env, TIME_MS);
  rmSync(home, { recursive: true, force: true });
  return { code, output: `${out}\n${err}` };
}

const TIME_MS = 400_000;
const MODEL = "test/model";

const COMMANDS = {
  codex: ["codex", "exec", "--skip-git-repo-check", "--sandbox", "danger-full-access"],
  claude: ["claude", "--print", "--model", MODEL, "--allowedTools", "Bash", "--"],
  opencode: ["opencode", "run"],
} as const;

const configOf = (failing: string, loop: string, language: Language): string => `
hosts:
  - { id: failing, base_url: "${failing}/v1", speaks: [${language}] }
  - { id: loop, base_url: "${loop}/v1", speaks: [${language}] }
models:
  - id: ${MODEL}
    context_length: 400000
    max_output_tokens: 64000
    price: { input: 1, output: 2 }
    routes: [{ host: failing, model: loop }, { host: loop, model: loop }]
defaults: { accountless: { rpm_limit: null, tpm_limit: null, daily_limit_usd: null, monthly_limit_usd: null } }
`;

const opencodeConfig = (url: string, key: string): string =>
  JSON.stringify({
    model: `gateway/${MODEL}`,
    small_model: `gateway/${MODEL}`,
    provider: {
      gateway: {
        npm: "@ai-sdk/openai-compatible",
        options: { baseURL: `${url}/v1`, apiKey: key },
        models: { [MODEL]: { limit: { context: 400_000, output: 64_000 } } },
      },
    },
    permission: { bash: "allow", edit: "allow" },
    autoupdate: false,
    share: "disabled",
  });

if (import.meta.main) process.exit((await runKilled(process.argv.at(-1)!)).every(Boolean) ? 0 : 1);
