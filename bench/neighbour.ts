import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { answered, fundedKey, startGateway } from "./gateway-process.ts";
import { load, type Target, type Timings } from "./load.ts";
import { option } from "./option.ts";
import { type Measured, start } from "./processes.ts";

/**
 * One key at a hundred times its limit: what it costs the others, and what each refusal costs the gateway. A
 * modest key sends 50 requests a second throughout; the noisy one, which may send 300 a minute, sends 500 a
 * second beside it, first small and then with bodies of 1 MB.
 *
 *     bun run bench/neighbour.ts --rounds 5 --seconds 6
 */
export async function benchNeighbour(rounds: number, seconds: number): Promise<Row[]> {
  const folder = mkdtempSync(join(tmpdir(), "neighbour-"));
  const host = await start([process.execPath, `${import.meta.dir}/mock-host.ts`]);
  const gateway = await startGateway(folder, configuration(host.port));
  try {
    const modest = await target(gateway, 1_000_000);
    const noisy = await target(gateway, NOISY_RPM);
    const scene = { gateway, modest, noisy, seconds };
    // What has not run yet is slow once, for everybody.
    await load(modest, { body: BODY, connections: 4, requests: 2_000 });
    const measured: Row[][] = [];
    for (let round = 0; round < rounds; round++) {
      const alone = await measureAlone(scene);
      const small = await measureBeside("small requests", BODY, alone.us, scene);
      measured.push([alone.row, small, await measureBeside("bodies of 1 MB", LARGE_BODY, alone.us, scene)]);
    }
    return measured[0]!.map((_, at) => middle(measured.map((rows) => rows[at]!)));
  } finally {
    await gateway.stop();
    await host.stop();
    rmSync(folder, { recursive: true });
  }
}

export interface Row {
  readonly beside: string;
  /** Of the modest key, ms. */
  readonly p50: number;
  readonly p99: number;
  readonly failures: number;
  readonly refused: number;
  /** CPU of the gateway for each refusal, µs; null where there were none. */
  readonly refusalUs: number | null;
}

interface Scene {
  readonly gateway: Measured;
  readonly modest: Target;
  readonly noisy: Target;
  readonly seconds: number;
}

async function measureAlone({ gateway, modest, seconds }: Scene): Promise<{ row: Row; us: number }> {
  const { result, us } = await cpuOf(gateway, () => quiet(modest, seconds));
  return { row: { beside: "nobody", ...told(result), refused: 0, refusalUs: null }, us };
}

async function measureBeside(beside: string, body: string, aloneUs: number, scene: Scene): Promise<Row> {
  const { gateway, modest, noisy, seconds } = scene;
  // The limit is reached first: what is still served is not a refusal.
  await load(noisy, { body: BODY, connections: 4, requests: NOISY_RPM });
  const { result, us } = await cpuOf(gateway, () =>
    Promise.all([
      quiet(modest, seconds),
      load(noisy, { body, connections: 16, perSecond: NOISY_PER_SECOND, seconds }),
    ]),
  );
  const [ours, theirs] = result;
  const refused = theirs.statuses[429] ?? 0;
  return { beside, ...told(ours), refused, refusalUs: (us - aloneUs) / Math.max(1, refused) };
}

/** The round whose p99 is in the middle. */
const middle = (rows: readonly Row[]): Row =>
  [...rows].sort((a, b) => a.p99 - b.p99)[Math.floor(rows.length / 2)]!;

const quiet = (modest: Target, seconds: number): Promise<Timings> =>
  load(modest, { body: BODY, connections: 4, perSecond: 50, seconds });

async function cpuOf<T>(process: Measured, run: () => Promise<T>): Promise<{ result: T; us: number }> {
  const before = process.cpuUs();
  const result = await run();
  return { result, us: process.cpuUs() - before };
}

const told = ({ totalMs, failures }: Timings) => ({
  p50: totalMs[Math.floor(totalMs.length * 0.5)] ?? Number.NaN,
  p99: totalMs[Math.floor(totalMs.length * 0.99)] ?? Number.NaN,
  failures,
});

const NOISY_RPM = 300;
const NOISY_PER_SECOND = (NOISY_RPM / 60) * 100;

const bodyOf = (content: string): string =>
  JSON.stringify({ model: "bench/model", max_tokens: 16, messages: [{ role: "user", content }] });
const BODY = bodyOf("ping");
const LARGE_BODY = bodyOf("x".repeat(1_000_000));

async function target(gateway: Measured, rpm: number): Promise<Target> {
  const { id, key, recovery_secret } = await fundedKey(gateway, 1_000);
  const { port } = gateway;
  await answered(
    await fetch(`http://127.0.0.1:${port}/v1/keys/${id}`, {
      method: "PATCH",
      headers: { authorization: `Bearer ${recovery_secret}` },
      body: JSON.stringify({ rpm_limit: rpm }),
    }),
  );
  return { port, path: "/v1/chat/completions", headers: { authorization: `Bearer ${key}` } };
}

const configuration = (hostPort: number): string => `
hosts:
  - { id: mock, base_url: "http://127.0.0.1:${hostPort}/v1", speaks: [chat.completions] }
models:
  - id: bench/model
    context_length: 10000000
    max_output_tokens: 1000
    price: { input: 0.1, output: 0.1 }
    routes: [{ host: mock, model: m }]
defaults:
  accountless: { rpm_limit: null, tpm_limit: null, daily_limit_usd: null, monthly_limit_usd: null }
`;

if (import.meta.main) {
  const rows = await benchNeighbour(Number(option("rounds", "3")), Number(option("seconds", "6")));
  console.log("| beside | p50 ms | p99 ms | failures | refused | CPU µs a refusal |");
  console.log("| --- | --- | --- | --- | --- | --- |");
  for (const { beside, p50, p99, failures, refused, refusalUs } of rows) {
    const cpu = refusalUs === null ? "–" : refusalUs.toFixed(0);
    console.log(`| ${beside} | ${p50.toFixed(2)} | ${p99.toFixed(2)} | ${failures} | ${refused} | ${cpu} |`);
  }
}
