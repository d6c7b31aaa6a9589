/**
 * Several gateways on one PostgreSQL: what a request costs there beside SQLite in the same run, with a
 * journal on disk and without, how much is asked of PostgreSQL, and how long a revoke takes over three nodes.
 * The load generator, the host and PostgreSQL share the machine with what is measured. (Two workers beside
 * one: workers.ts.)
 *
 *     bun run bench/scaling.ts [--rounds 5] [--seconds 2] [--per-second 1000] [--revokes 100] [--stream yes]
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Cluster } from "../test/postgres/cluster.ts";
import { type FundedKey, fundedKey, metric, startGateway } from "./gateway-process.ts";
import { load, percentile } from "./load.ts";
import { median } from "./median.ts";
import { option } from "./option.ts";
import { type Measured, start } from "./processes.ts";

export interface ScalingSize {
  readonly rounds: number;
  readonly seconds: number;
  /** Of all arrangements alike: on cores that are full, CPU times say how full they are. */
  readonly perSecond: number;
  readonly revokes: number;
  /** Streamed answers. */
  readonly stream: boolean;
}

/** Medians over the rounds, by arrangement. */
type Each = Readonly<Record<string, number>>;

export interface ScalingRun {
  /** CPU µs a request of the gateway's processes. */
  readonly cpuUs: Each;
  readonly requestsPerSecond: Each;
  readonly firstByteP50Ms: Each;
  readonly totalP50Ms: Each;
  readonly totalP99Ms: Each;
  /** Of PostgreSQL's processes, a request. */
  readonly postgresCpuUs: Each;
  readonly statementsPer1000: Each;
  /** Batches of ends that were shipped, or what was committed. */
  readonly transactionsPer1000: Each;
  readonly writtenBytesPerRequest: Each;
  /** Sorted. */
  readonly revokeMs: readonly number[];
  readonly revokeOneStoppedMs: number;
}

export async function benchScaling(size: ScalingSize): Promise<ScalingRun> {
  const folder = mkdtempSync(join(tmpdir(), "scaling-"));
  const cluster = await Cluster.start(["synchronous_commit=on", "fsync=on"]);
  const host = await start([process.execPath, join(import.meta.dir, "mock-host.ts")]);
  const running: Measured[] = [];
  const open = async (name: string, more: string): Promise<Arrangement> => {
    const one = await startGateway(join(folder, name), configuration(host.port, more));
    running.push(one);
    return { name, process: one, keys: await fundedKeys(one) };
  };
  try {
    const store = `store: ${await cluster.database()}`;
    const arrangements = [
      await open("sqlite", ""),
      await open("postgres", store),
      await open("diskless", `store: ${await cluster.database()}\njournal: postgres`),
    ];
    const samples = new Map<string, Sample[]>(arrangements.map(({ name }) => [name, []]));
    for (const {
      keys,
      process: { port },
    } of arrangements)
      await storm(port, keys, size);
    for (let round = 0; round < size.rounds; round++) {
      for (const one of arrangements) samples.get(one.name)!.push(await sample(one, cluster, size));
    }
    for (const one of running.splice(0)) await one.stop();
    const nodes = await Promise.all(["a", "b", "c"].map((name) => open(name, store)));
    const revokes = await revoke(nodes, size.revokes);
    const each = (what: keyof Sample) =>
      Object.fromEntries([...samples].map(([name, all]) => [name, median(all.map((one) => one[what]))]));
    return {
      cpuUs: each("cpuUs"),
      requestsPerSecond: each("perSecond"),
      firstByteP50Ms: each("firstByteP50Ms"),
      totalP50Ms: each("totalP50Ms"),
      totalP99Ms: each("totalP99Ms"),
      postgresCpuUs: each("postgresCpuUs"),
      statementsPer1000: each("statementsPer1000"),
      transactionsPer1000: each("transactionsPer1000"),
      writtenBytesPerRequest: each("writtenBytes"),
      ...revokes,
    };
  } finally {
    for (const one of running) await one.stop("SIGKILL");
    await host.stop("SIGKILL");
    await cluster.stop();
    rmSync(folder, { recursive: true });
  }
}

interface Arrangement {
  readonly name: string;
  readonly process: Measured;
  readonly keys: readonly FundedKey[];
}

interface Sample {
  readonly cpuUs: number;
  readonly perSecond: number;
  readonly firstByteP50Ms: number;
  readonly totalP50Ms: number;
  readonly totalP99Ms: number;
  readonly postgresCpuUs: number;
  readonly statementsPer1000: number;
  readonly transactionsPer1000: number;
  readonly writtenBytes: number;
}

const KEYS = 16;
const CONNECTIONS_EACH = 4;
const body = (stream: boolean): string =>
  JSON.stringify({
    model: "bench/model",
    max_tokens: 100,
    stream,
    messages: [{ role: "user", content: "Hello" }],
  });

async function sample(
  { process: gateway, keys }: Arrangement,
  cluster: Cluster,
  size: ScalingSize,
): Promise<Sample> {
  const [cpuBefore, postgresBefore, before] = [gateway.cpuUs(), cluster.cpuUs(), await figures(gateway)];
  const writtenBefore = await cluster.written();
  const { count, perSecond, firstByteMs, totalMs } = await storm(gateway.port, keys, size);
  const after = await figures(gateway);
  return {
    cpuUs: (gateway.cpuUs() - cpuBefore) / count,
    perSecond,
    firstByteP50Ms: percentile(firstByteMs, 0.5),
    totalP50Ms: percentile(totalMs, 0.5),
    totalP99Ms: percentile(totalMs, 0.99),
    postgresCpuUs: (cluster.cpuUs() - postgresBefore) / count,
    statementsPer1000: ((after.statements - before.statements) / count) * 1_000,
    transactionsPer1000: ((after.batches - before.batches) / count) * 1_000,
    writtenBytes: ((await cluster.written()) - writtenBefore) / count,
  };
}

export interface Storm extends Pick<ScalingSize, "seconds" | "stream"> {
  /** Null: each connection sends its next request once the last was answered. */
  readonly perSecond: number | null;
}

/** All keys at once, and every answer a 200. */
export async function storm(
  port: number,
  keys: readonly FundedKey[],
  { seconds, perSecond, stream }: Storm,
): Promise<{ count: number; perSecond: number; firstByteMs: number[]; totalMs: number[] }> {
  const target = (key: string) => ({
    port,
    path: "/v1/chat/completions",
    headers: { authorization: `Bearer ${key}` },
  });
  const runs = await Promise.all(
    keys.map(({ key }) =>
      load(target(key), {
        body: body(stream),
        connections: CONNECTIONS_EACH,
        seconds,
        ...(perSecond === null ? {} : { perSecond: perSecond / keys.length }),
      }),
    ),
  );
  for (const { failures, statuses } of runs) {
    if (failures > 0) throw new Error(`answers were refused: ${JSON.stringify(statuses)}`);
  }
  const count = runs.reduce((sum, run) => sum + run.count, 0);
  return {
    count,
    perSecond: count / Math.max(...runs.map((run) => run.seconds)),
    firstByteMs: runs.flatMap((run) => run.firstByteMs).sort((a, b) => a - b),
    totalMs: runs.flatMap((run) => run.totalMs).sort((a, b) => a - b),
  };
}

async function revoke(
  nodes: readonly Arrangement[],
  times: number,
): Promise<Pick<ScalingRun, "revokeMs" | "revokeOneStoppedMs">> {
  const [first, second, third] = nodes as [Arrangement, Arrangement, Arrangement];
  const timed = async (at: Arrangement, { id, key }: FundedKey): Promise<number> => {
    const startedMs = performance.now();
    const answer = await fetch(`http://127.0.0.1:${at.process.port}/v1/keys/${id}`, {
      method: "DELETE",
      headers: { authorization: `Bearer ${key}` },
    });
    if (!answer.ok) throw new Error(`the revoke was answered ${answer.status}`);
    return performance.now() - startedMs;
  };
  const revokeMs: number[] = [];
  for (let turn = 0; turn < times; turn++) {
    const [key] = await fundedKeys(second.process, 1);
    revokeMs.push(await timed(first, key!));
  }
  const [key] = await fundedKeys(second.process, 1);
  process.kill(third.process.pid, "SIGSTOP");
  const revokeOneStoppedMs = await timed(first, key!);
  process.kill(third.process.pid, "SIGCONT");
  return { revokeMs: revokeMs.sort((a, b) => a - b), revokeOneStoppedMs };
}

export function fundedKeys(gateway: Measured, count = KEYS): Promise<FundedKey[]> {
  return Promise.all(Array.from({ length: count }, () => fundedKey(gateway, 10_000)));
}

async function figures(gateway: Measured): Promise<{ statements: number; batches: number }> {
  const value = async (name: string) => (await metric(gateway, name)) || 0;
  return {
    statements: await value("gateway_grant_statements"),
    batches: await value("gateway_shipped_batches"),
  };
}

export const configuration = (hostPort: number, more: string): string => `
hosts:
  - { id: mock, base_url: "http://127.0.0.1:${hostPort}/v1", speaks: [chat.completions] }
models:
  - id: bench/model
    name: Bench
    context_length: 100000
    max_output_tokens: 4000
    price: { input: 1, output: 10 }
    routes: [{ host: mock, model: bench-model }]
defaults:
  accountless: { rpm_limit: 100000000, tpm_limit: null, daily_limit_usd: 5000, monthly_limit_usd: 10000 }
setup: { accountless_keys_per_address_per_hour: 100000 }
${more}
`;

if (import.meta.main) {
  const run = await benchScaling({
    rounds: Number(option("rounds", "5")),
    seconds: Number(option("seconds", "2")),
    perSecond: Number(option("per-second", "1000")),
    revokes: Number(option("revokes", "100")),
    stream: option("stream", "no") === "yes",
  });
  const { revokeMs, ...rest } = run;
  console.log(rest);
  console.log(
    `revoke over 3 nodes: p50 ${percentile(revokeMs, 0.5).toFixed(1)} ms, max ${revokeMs.at(-1)!.toFixed(1)} ms`,
  );
}
