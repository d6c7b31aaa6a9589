import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ADMIN, Folder, GatewayProcess } from "../process/gateway.ts";
import { Line } from "./line.ts";

/**
 * What the agents show their users when the gateway refuses them for what no retry helps, and how long after: a sentence
 * within five seconds, or what docs/clients.md says of them. Part of `bun run agents`.
 */
export async function runRefusals(tools: string): Promise<boolean[]> {
  const gateway = await GatewayProcess.start(new Folder(CONFIG));
  const outcomes: boolean[] = [];
  const wished = process.env.AGENTS_REFUSALS?.split(",");
  for (const agent of AGENTS)
    for (const cause of CAUSES)
      if (wished === undefined || wished.includes(agent.name))
        outcomes.push(await refuse(agent, cause, gateway, tools));
  await gateway.stop();
  return outcomes;
}

async function refuse(agent: Agent, cause: Cause, gateway: GatewayProcess, tools: string): Promise<boolean> {
  const key = await cause.prepare(gateway);
  const line = await Line.open(Number(new URL(gateway.url).port), 0);
  const home = mkdtempSync(join(tmpdir(), "agent-refused-"));
  const { command, env } = agent.prepare(home, line.url, key, join(tools, "node_modules/.bin"));
  // With all that it starts.
  const child = Bun.spawn(["timeout", "-s", "KILL", String(MAX_S), ...command], {
    cwd: home,
    env: { PATH: process.env.PATH!, HOME: home, ...env },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  let shownMs: number | null = null;
  let message = "";
  const read = async (stream: ReadableStream<Uint8Array>) => {
    for await (const bytes of stream) {
      message += Buffer.from(bytes).toString();
      if (shownMs === null && cause.says.test(message)) shownMs = performance.now();
    }
  };
  const reading = Promise.all([read(child.stdout), read(child.stderr)]);
  await child.exited;
  await reading;
  const refusedMs = line.refusedMs;
  const tookMs = shownMs === null || refusedMs === null ? null : Math.max(0, shownMs - refusedMs);
  const within = agent.otherwise?.[cause.name] ?? WITHIN_MS;
  const isFine = within === "never" ? tookMs === null : tookMs !== null && tookMs <= within;
  const shown =
    tookMs === null ? `no sentence in ${MAX_S} s` : `a sentence after ${(tookMs / 1_000).toFixed(1)} s`;
  const end = child.signalCode === null ? `exit ${child.exitCode}` : "still running then";
  console.log(
    `${agent.name}, ${cause.name}: ${isFine ? "as documented" : "FAILED"}; ${shown}, ${line.posts} POST, ${end}`,
  );
  if (!isFine || process.env.AGENTS_VERBOSE !== undefined) console.log(message.slice(-3_000));
  line.close();
  rmSync(home, { recursive: true, force: true });
  return isFine;
}

/** Begins with the refusal, and not with the agent's start, which takes some of them longer. */
const WITHIN_MS = 5_000;
/** Some take half of it to start. */
const MAX_S = 60;

interface Cause {
  readonly name: string;
  readonly says: RegExp;
  /** Returns a key that is refused so. */
  prepare(gateway: GatewayProcess): Promise<string>;
}

const change = async (
  gateway: GatewayProcess,
  path: string,
  method: string,
  bearer: string,
  body?: object,
) => {
  const { status, text } = await gateway.send(method, path, body, bearer);
  if (status !== 200) throw new Error(`${method} ${path}: ${status} ${text}`);
};

const CAUSES: readonly Cause[] = [
  {
    name: "wrong key",
    says: /Incorrect API key|Invalid API key|401/i,
    prepare: async () => `or-live-${"1".repeat(32)}`,
  },
  {
    name: "revoked key",
    says: /Incorrect API key|Invalid API key|401/i,
    async prepare(gateway) {
      const { id, key } = await gateway.keyWith(10);
      await change(gateway, `/v1/keys/${id}`, "DELETE", key);
      return key;
    },
  },
  {
    name: "full day",
    says: /daily_limit_usd|retry limit/,
    async prepare(gateway) {
      const { id, key } = await gateway.keyWith(10);
      await change(gateway, `/v1/keys/${id}`, "PATCH", key, { daily_limit_usd: 0.000001 });
      return key;
    },
  },
  {
    name: "full run",
    says: /may have 0 calls|retry limit/,
    async prepare(gateway) {
      const { key, recovery_secret } = await gateway.keyWith(10);
      const json = { model: "other/agent", max_tokens: 10, messages: [{ role: "user", content: "Hi" }] };
      await fetch(`${gateway.url}/v1/chat/completions`, {
        method: "POST",
        headers: { authorization: `Bearer ${key}`, "x-gateway-run": "job" },
        body: JSON.stringify(json),
      });
      await change(gateway, "/v1/runs/job", "PATCH", recovery_secret, { calls: 0 });
      return key;
    },
  },
  { name: "no credit", says: /credit/i, prepare: async (gateway) => (await gateway.keyWith(0)).key },
  {
    name: "suspended",
    says: /suspended/i,
    async prepare(gateway) {
      const { key, balance_id } = await gateway.keyWith(10);
      const { status } = await gateway.post(
        `/admin/accounts/${balance_id}/suspend`,
        { reason: "acceptable_use" },
        ADMIN,
      );
      if (status !== 200) throw new Error(`suspend: ${status}`);
      return key;
    },
  },
];

interface Agent {
  readonly name: string;
  prepare(
    home: string,
    url: string,
    key: string,
    bin: string,
  ): { readonly command: string[]; readonly env: Record<string, string> };
  /** By the cause's name, where it is not within five seconds: docs/clients.md says what it does instead. */
  readonly otherwise?: Readonly<Record<string, number | "never">>;
}

const TASK = "Say hello.";

/** It takes every refusal but a 429 for a broken stream and tries six times; on a 429 it waits as long as the header says. */
const CODEX = {
  "wrong key": 20_000,
  "revoked key": 20_000,
  "no credit": 20_000,
  suspended: 20_000,
  "full day": "never",
} as const;

const AGENTS: readonly Agent[] = [
  {
    name: "claude-code",
    prepare: (_, url, key, bin) => ({
      command: [join(bin, "claude"), "--print", "--model", "other/agent", "--", TASK],
      env: {
        ANTHROPIC_BASE_URL: url,
        ANTHROPIC_AUTH_TOKEN: key,
        ANTHROPIC_SMALL_FAST_MODEL: "other/agent",
        ANTHROPIC_CUSTOM_HEADERS: "x-gateway-run: job",
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
        IS_SANDBOX: "1",
      },
    }),
  },
  ...(["http", "ws"] as const).map(
    (transport): Agent => ({
      name: `codex-${transport}`,
      otherwise: CODEX,
      prepare(home, url, key, bin) {
        mkdirSync(join(home, ".codex"));
        writeFileSync(join(home, ".codex/config.toml"), codexConfig(url, transport === "ws"));
        return {
          command: [
            join(bin, "codex"),
            "exec",
            "--skip-git-repo-check",
            "--sandbox",
            "danger-full-access",
            TASK,
          ],
          env: { CODEX_HOME: join(home, ".codex"), GATEWAY_KEY: key },
        };
      },
    }),
  ),
  {
    name: "opencode",
    // It repeats every 429 for as long as it runs.
    otherwise: { "full day": "never", "full run": "never" },
    prepare(home, url, key, bin) {
      mkdirSync(join(home, ".config/opencode"), { recursive: true });
      writeFileSync(join(home, ".config/opencode/opencode.json"), opencodeConfig(url, key));
      return { command: [join(bin, "opencode"), "run", TASK], env: {} };
    },
  },
];

const codexConfig = (url: string, sockets: boolean): string => `
model = "other/agent"
model_provider = "gateway"
[model_providers.gateway]
name = "gateway"
base_url = "${url}/v1"
env_key = "GATEWAY_KEY"
wire_api = "responses"
supports_websockets = ${sockets}
http_headers = { "x-gateway-run" = "job" }
`;

const opencodeConfig = (url: string, key: string): string =>
  JSON.stringify({
    model: "anthropic/claude-sonnet-4-6",
    small_model: "anthropic/claude-sonnet-4-6",
    provider: {
      anthropic: { options: { baseURL: `${url}/v1`, apiKey: key, headers: { "x-gateway-run": "job" } } },
    },
    autoupdate: false,
    share: "disabled",
  });

/** Nobody gets so far as the host. */
const CONFIG = `
hosts: [{ id: none, base_url: "http://127.0.0.1:9/v1", speaks: [chat.completions, responses, messages] }]
models:
${["other/agent", "anthropic/claude-sonnet-4-6"]
  .map(
    (id) => `  - id: ${id}
    context_length: 400000
    max_output_tokens: 64000
    price: { input: 1, output: 2 }
    routes: [{ host: none, model: none }]`,
  )
  .join("\n")}
`;
