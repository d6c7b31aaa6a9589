import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { LocalChain, NETWORK, USDC } from "../test/fakes/chain/chain.ts";
import { fundedKey, startGateway } from "./gateway-process.ts";
import { load, type Target } from "./load.ts";
import { median } from "./median.ts";
import { option } from "./option.ts";
import { type Measured, start } from "./processes.ts";

/**
 * What a request costs that pays from its balance where payments are configured: its CPU ÷ that of a gateway without
 * them, in turns.
 *
 *     bun run bench payments --rounds 15 --requests 2000
 */
export async function benchPayments(rounds: number, requests: number): Promise<number[]> {
  const folder = mkdtempSync(join(tmpdir(), "payments-"));
  const chain = await LocalChain.start();
  const host = await start([process.execPath, `${import.meta.dir}/mock-host.ts`]);
  const running: Measured[] = [];
  try {
    const subjects: Subject[] = [];
    for (const [name, more] of [
      ["without", ""],
      ["with", payments(chain.rpc, await chain.gasKey())],
    ] as const) {
      const gateway = await startGateway(join(folder, name), configuration(host.port) + more);
      running.push(gateway);
      const { key } = await fundedKey(gateway, 1_000);
      const headers = { authorization: `Bearer ${key}` };
      subjects.push({ gateway, target: { port: gateway.port, path: "/v1/chat/completions", headers } });
    }
    const [without, paid] = subjects as [Subject, Subject];
    // What has not run yet is slow once, for everybody.
    for (const subject of subjects) await cpuUs(subject, WARM_UP);
    const ratios: number[] = [];
    for (let round = 0; round < rounds; round++) {
      // Who comes first changes: the machine may be getting slower, or faster.
      const first = round % 2 === 0 ? await cpuUs(without, requests) : null;
      const ours = await cpuUs(paid, requests);
      ratios.push(ours / (first ?? (await cpuUs(without, requests))));
    }
    return ratios;
  } finally {
    for (const one of running) await one.stop();
    await host.stop();
    chain.stop();
    rmSync(folder, { recursive: true });
  }
}

interface Subject {
  readonly gateway: Measured;
  readonly target: Target;
}

async function cpuUs({ gateway, target }: Subject, requests: number): Promise<number> {
  const before = gateway.cpuUs();
  const { count, failures } = await load(target, { body: BODY, connections: 16, requests });
  if (failures > 0) throw new Error(`${failures} requests failed`);
  return (gateway.cpuUs() - before) / count;
}

const WARM_UP = 5_000;
const BODY = JSON.stringify({
  model: "bench/model",
  max_tokens: 16,
  messages: [{ role: "user", content: "ping" }],
});

const configuration = (hostPort: number): string => `
hosts:
  - { id: mock, base_url: "http://127.0.0.1:${hostPort}/v1", speaks: [chat.completions] }
models:
  - id: bench/model
    context_length: 100000
    max_output_tokens: 1000
    price: { input: 0.1, output: 0.1 }
    routes: [{ host: mock, model: m }]
defaults:
  accountless: { rpm_limit: null, tpm_limit: null, daily_limit_usd: null, monthly_limit_usd: null }
`;

const payments = (rpc: string, gasKey: string): string => `
payments:
  x402:
    - { network: "${NETWORK}", asset: "${USDC}", pay_to: "0x${"1".repeat(40)}", rpc: "${rpc}", gas_key: "${gasKey}" }
`;

if (import.meta.main) {
  const ratios = await benchPayments(Number(option("rounds", "15")), Number(option("requests", "2000")));
  const sorted = [...ratios].sort((a, b) => a - b);
  console.log("CPU a request with payments configured ÷ without, in turns:");
  console.log(
    `median ${median(ratios).toFixed(3)}, quartiles ${[1, 3].map((part) => sorted[Math.floor((part * sorted.length) / 4)]!.toFixed(3)).join(" to ")}, of ${ratios.length} rounds`,
  );
}
