import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { UsageAnswer } from "../../src/api/usage.ts";
import { systemClock } from "../../src/units/clock.ts";
import { BreakpointCache } from "../fakes/breakpoint-cache.ts";
import { type CacheUse, PromptCache } from "../fakes/prompt-cache.ts";
import { Folder, GatewayProcess } from "../process/gateway.ts";
import { agentEnvironment, codexConfig, runAgent } from "./agent-process.ts";
import { type Language, startLoopHost } from "./loop-host.ts";

/**
 * Sessions of 40 turns of Claude Code and of Codex, each on hosts of both vendors' languages that cache prompts as their
 * vendors say: what was read from the cache from the third turn on, and the bill next to that of the agent's own
 * language. Part of `bun run agents`; alone, with the agents in `<folder>/node_modules`:
 *
 *     bun test/agents/cached.ts <folder>
 */
export async function runCached(tools: string): Promise<boolean[]> {
  const outcomes: boolean[] = [];
  for (const agent of ["claude", "codex"] as const) {
    const [own, other] =
      agent === "claude" ? (["messages", "responses"] as const) : (["responses", "messages"] as const);
    const native = await session(tools, agent, own);
    const foreign = await session(tools, agent, other);
    const ratio = foreign.usd / native.usd;
    const isGood =
      [native, foreign].every(({ turns, share }) => turns >= TURNS && share >= 0.9) && ratio <= 1.1;
    for (const [language, { turns, share, usd }] of [
      [own, native],
      [other, foreign],
    ] as const)
      console.log(
        `${agent} on ${language}: ${turns} turns, ${(share * 100).toFixed(1)} % read from turn 3 on, $${usd.toFixed(4)}`,
      );
    console.log(
      `${agent}: ${isGood ? "done" : "FAILED"}; the bill is ${ratio.toFixed(3)} times that of its own language`,
    );
    outcomes.push(isGood);
  }
  return outcomes;
}

const TURNS = 40;

interface Session {
  readonly turns: number;
  /** The part of the prompts' tokens that was read from the cache, from the third turn on. */
  readonly share: number;
  readonly usd: number;
}

async function session(tools: string, agent: "claude" | "codex", language: Language): Promise<Session> {
  const uses: CacheUse[] = [];
  const cache = language === "messages" ? new PromptCache(systemClock) : new BreakpointCache(systemClock);
  const host = await startLoopHost(TURNS, {
    caching: {
      take(body) {
        const use = cache.take(body);
        if (typeof use === "string") console.log(`refused: ${use.slice(0, 300)}`);
        // Titles and the like are asked for apart.
        else if (
          (body.tools?.length ?? 0) > 0 ||
          JSON.stringify(body.input ?? "").includes("additional_tools")
        )
          uses.push(use);
        return use;
      },
    },
  });
  const gateway = await GatewayProcess.start(new Folder(configOf(host.url, language)));
  const { key } = await gateway.keyWith(100);
  const home = mkdtempSync(join(tmpdir(), `agent-cached-${agent}-`));
  mkdirSync(join(home, "work"));
  mkdirSync(join(home, ".codex"));
  writeFileSync(join(home, ".codex/config.toml"), codexConfig(gateway.url, MODEL));
  const bin = join(tools, "node_modules/.bin");
  const task = "Take all steps.";
  const command =
    agent === "claude"
      ? [join(bin, "claude"), "--print", "--model", MODEL, "--allowedTools", "Bash", "--", task]
      : [join(bin, "codex"), "exec", "--skip-git-repo-check", "--sandbox", "danger-full-access", task];
  const env = agentEnvironment(home, gateway.url, key, MODEL);
  const { out, err, code } = await runAgent(command, join(home, "work"), env, TIME_MS);
  if (code !== 0 || process.env.AGENTS_VERBOSE !== undefined)
    console.log(`${code} ${out}\n${err}`.slice(-3_000));
  const usage: UsageAnswer = (await gateway.get("/v1/usage", key)).json;
  await gateway.stop();
  await host.close();
  rmSync(home, { recursive: true, force: true });
  if (process.env.AGENTS_VERBOSE !== undefined)
    console.log(uses.map(({ read, written, rest }) => `${read}/${written}/${rest}`).join(" "), usage);
  const late = uses.slice(2);
  const sum = (of: (use: CacheUse) => number) => late.reduce((total, use) => total + of(use), 0);
  return {
    turns: uses.length,
    share:
      sum(({ read }) => read) /
      Math.max(
        1,
        sum(({ read, written, rest }) => read + written + rest),
      ),
    usd: usdOf(usage),
  };
}

const MODEL = "other/model";
const TIME_MS = 400_000;

const usdOf = ({ routes }: UsageAnswer): number => routes.reduce((sum, { cost_usd }) => sum + cost_usd, 0);

const configOf = (url: string, language: Language): string => `
hosts:
  - { id: own, base_url: "${url}/v1", speaks: [${language}]${language === "messages" ? "" : ", quirks: { cache_marks: true }"} }
models:
  - id: ${MODEL}
    context_length: 400000
    max_output_tokens: 64000
    price: { input: 1, output: 5, cache_read: 0.1, cache_write: 1.25 }
    routes: [{ host: own, model: loop }]
`;

if (import.meta.main) process.exit((await runCached(process.argv.at(-1)!)).every(Boolean) ? 0 : 1);
