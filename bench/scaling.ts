/**
 * Several gateways on one PostgreSQL: what a request costs there next to SQLite in the same run, with a
 * journal on disk and without, how much is asked of PostgreSQL, and how long a revoke takes over three nodes.
 * The load generator, the host and PostgreSQL share the machine with what is measured. (Two workers next to
 * one: workers.ts.)
 *
 *     bun run bench scaling [--rounds 5] [--seconds 2] [--per-second 1000] [--revokes 100] [--stream yes]
 */
import { Cluster } from "../test/postgres/cluster.ts";
import { ascending, median, percentile, table } from "./figures.ts";
import {
  chatBody,
  type FundedKey,
  fundedKey,
  type GatewaySettings,
  metric,
  targetOf,
} from "./gateway-process.ts";
import { cpuOf, served } from "./load.ts";
import { numberOption, option } from "./options.ts";
import type { Measured } from "./processes.ts";
import { inScene } from "./scene.ts";

export interface ScalingSize {
  readonly rounds: number;
  readonly seconds: number;
  /** The same for all arrangements: on full cores, CPU times would show only how full they are. */
  readonly perSecond: number;
  readonly revokes: number;
  /** Streamed answers. */
  readonly stream: boolean;
}

export interface ScalingRun {
  /** Medians over the rounds. */
  readonly arrangements: readonly ({ readonly name: string } & Sample)[];
  /** Sorted. */
  readonly revokeMs: readonly number[];
  readonly revokeOneStoppedMs: number;
}

export const benchScaling = (size: ScalingSize): Promise<ScalingRun> =>
  inScene("scaling", async ({ gateway, onEnd }) => {
    const cluster = await Cluster.start(["synchronous_commit=on", "fsync=on"]);
    onEnd(() => cluster.stop());
    const open = async (name: string, more: string): Promise<Arrangement> => {
      const one = await gateway(name, withLimits(more));
      return { name, process: one, keys: await fundedKeys(one) };
    };
    const store = `store: ${await cluster.database()}`;
    const arrangements = [
      await open("sqlite", ""),
      await open("postgres", store),
      await open("diskless", `store: ${await cluster.database()}\njournal: postgres`),
    ];
    const samples = new Map<string, Sample[]>(arrangements.map(({ name }) => [name, []]));
    for (const { keys, process: one } of arrangements) await storm(one.port, keys, size);
    for (let round = 0; round < size.rounds; round++) {
      for (const one of arrangements) samples.get(one.name)!.push(await sample(one, cluster, size));
    }
    for (const one of arrangements) await one.process.stop();
    const nodes = await Promise.all(["a", "b", "c"].map((name) => open(name, store)));
    return {
      arrangements: [...samples].map(([name, all]) => ({ name, ...middleOf(all) })),
      ...(await revoke(nodes, size.revokes)),
    };
  });

const middleOf = (samples: readonly Sample[]): Sample =>
  Object.fromEntries(
    Object.keys(samples[0]!).map((what) => [what, median(samples.map((one) => one[what as keyof Sample]))]),
  ) as unknown as Sample;

/** Every limit that a key may have but tokens a minute, so wide that none is reached. */
export const withLimits = (more: string): GatewaySettings => ({
  limits: "rpm_limit: 100000000, tpm_limit: null, daily_limit_usd: 5000, monthly_limit_usd: 10000",
  more: `setup: { accountless_keys_per_address_per_hour: 100000 }\n${more}`,
});

interface Arrangement {
  readonly name: string;
  readonly process: Measured;
  readonly keys: readonly FundedKey[];
}

interface Sample {
  /** CPU µs a request of the gateway's processes. */
  readonly cpuUs: number;
  readonly perSecond: number;
  readonly firstByteP50Ms: number;
  readonly totalP50Ms: number;
  readonly totalP99Ms: number;
  /** CPU time of PostgreSQL's processes for each request. */
  readonly postgresCpuUs: number;
  readonly statementsPer1000: number;
  /** Batches of ends that were shipped, or what was committed. */
  readonly transactionsPer1000: number;
  /** For each request. */
  readonly writtenBytes: number;
}

const KEYS = 16;
const CONNECTIONS_EACH = 4;
async function sample(
  { process: gateway, keys }: Arrangement,
  cluster: Cluster,
  size: ScalingSize,
): Promise<Sample> {
  const [postgresBefore, before] = [cluster.cpuUs(), await figures(gateway)];
  const writtenBefore = await cluster.written();
  const { result, us } = await cpuOf(gateway, () => storm(gateway.port, keys, size));
  const { count, perSecond, firstByteMs, totalMs } = result;
  const after = await figures(gateway);
  return {
    cpuUs: us / count,
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
  const body = chatBody("Hello", { max_tokens: 100, stream });
  const plan = { body, connections: CONNECTIONS_EACH, seconds };
  const pace = perSecond === null ? {} : { perSecond: perSecond / keys.length };
  const runs = await Promise.all(
    keys.map(({ key }) => served(targetOf({ port }, key), { ...plan, ...pace })),
  );
  const count = runs.reduce((sum, run) => sum + run.count, 0);
  return {
    count,
    perSecond: count / Math.max(...runs.map((run) => run.seconds)),
    firstByteMs: ascending(runs.flatMap((run) => run.firstByteMs)),
    totalMs: ascending(runs.flatMap((run) => run.totalMs)),
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
  return { revokeMs: ascending(revokeMs), revokeOneStoppedMs };
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

if (import.meta.main) {
  const { arrangements, revokeMs, revokeOneStoppedMs } = await benchScaling({
    rounds: numberOption("rounds", 5),
    seconds: numberOption("seconds", 2),
    perSecond: numberOption("per-second", 1_000),
    revokes: numberOption("revokes", 100),
    stream: option("stream", "no") === "yes",
  });
  console.log(
    table(
      Object.keys(arrangements[0]!),
      arrangements.map((row) => Object.values(row)),
    ),
  );
  const [p50, max] = [0.5, 1].map((part) => percentile(revokeMs, part).toFixed(1));
  const stopped = `${revokeOneStoppedMs.toFixed(0)} ms while one is stopped`;
  console.log(`revoke over 3 nodes: p50 ${p50} ms, max ${max} ms, ${stopped}`);
}
