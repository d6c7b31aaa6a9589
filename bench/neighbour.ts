import { quantiles, table } from "./figures.ts";
import { answered, chatBody, fundedKey, targetOf } from "./gateway-process.ts";
import { cpuOf, load, type Target, type Timings } from "./load.ts";
import { numberOption } from "./options.ts";
import type { Measured } from "./processes.ts";
import { inScene } from "./scene.ts";

/**
 * One key at a hundred times its limit: what it costs the others, and what each refusal costs the gateway. A
 * modest key sends 50 requests a second throughout; the noisy one, which may send 300 a minute, sends 500 a
 * second next to it, first small and then with bodies of 1 MB.
 *
 *     bun run bench neighbour --rounds 5 --seconds 6
 */
export const benchNeighbour = (rounds: number, seconds: number): Promise<Row[]> =>
  inScene("neighbour", async ({ gateway: open }) => {
    const gateway = await open("gateway");
    const modest = await target(gateway, 1_000_000);
    const noisy = await target(gateway, NOISY_RPM);
    const scene = { gateway, modest, noisy, seconds };
    // What has not run yet is slow once, for everybody.
    await load(modest, { body: BODY, connections: 4, requests: 2_000 });
    const measured: Row[][] = [];
    for (let round = 0; round < rounds; round++) {
      const alone = await measureAlone(scene);
      const small = await measureNextTo("small requests", BODY, alone.us, scene);
      measured.push([alone.row, small, await measureNextTo("bodies of 1 MB", LARGE_BODY, alone.us, scene)]);
    }
    return measured[0]!.map((_, at) => middle(measured.map((rows) => rows[at]!)));
  });

export interface Row {
  readonly neighbour: string;
  /** Latency of the modest key, ms. */
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
  return { row: { neighbour: "nobody", ...summary(result), refused: 0, refusalUs: null }, us };
}

async function measureNextTo(neighbour: string, body: string, aloneUs: number, scene: Scene): Promise<Row> {
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
  return { neighbour, ...summary(ours), refused, refusalUs: (us - aloneUs) / Math.max(1, refused) };
}

/** The round whose p99 is in the middle. */
const middle = (rows: readonly Row[]): Row =>
  [...rows].sort((a, b) => a.p99 - b.p99)[Math.floor(rows.length / 2)]!;

const quiet = (modest: Target, seconds: number): Promise<Timings> =>
  load(modest, { body: BODY, connections: 4, perSecond: 50, seconds });

const summary = ({ totalMs, failures }: Timings) => ({ ...quantiles(totalMs), failures });

const NOISY_RPM = 300;
const NOISY_PER_SECOND = (NOISY_RPM / 60) * 100;

const BODY = chatBody("ping");
const LARGE_BODY = chatBody("x".repeat(1_000_000));

async function target(gateway: Measured, rpm: number): Promise<Target> {
  const { id, key, recovery_secret } = await fundedKey(gateway, 1_000);
  await answered(
    await fetch(`http://127.0.0.1:${gateway.port}/v1/keys/${id}`, {
      method: "PATCH",
      headers: { authorization: `Bearer ${recovery_secret}` },
      body: JSON.stringify({ rpm_limit: rpm }),
    }),
  );
  return targetOf(gateway, key);
}

if (import.meta.main) {
  const rows = await benchNeighbour(numberOption("rounds", 3), numberOption("seconds", 6));
  const head = ["load", "p50 ms", "p99 ms", "failures", "refused", "CPU µs a refusal"];
  console.log(
    table(
      head,
      rows.map(({ neighbour, p50, p99, failures, refused, refusalUs }) => [
        neighbour,
        p50,
        p99,
        failures,
        refused,
        refusalUs,
      ]),
    ),
  );
}
