/**
 * What a request costs with two workers next to one process, on PostgreSQL and on SQLite, the load generator counted: at a fixed rate,
 * where two have half as much to do at each turn of their loops, and as fast as the machine goes. Next to
 * them, two gateways that share nothing at all (SQLite, half of the keys each) show what any two processes
 * cost on this machine. Each arrangement is warm before it is measured, they take turns, and ratios are those
 * of the same round.
 *
 *     bun run bench workers [--rounds 9] [--seconds 1.5] [--warm 15] [--per-second 1000]
 */
import { Cluster } from "../test/postgres/cluster.ts";
import { median, table } from "./figures.ts";
import type { FundedKey } from "./gateway-process.ts";
import { numberOption } from "./options.ts";
import type { Measured } from "./processes.ts";
import { fundedKeys, storm, withLimits } from "./scaling.ts";
import { inScene } from "./scene.ts";

export interface WorkersSize {
  readonly rounds: number;
  readonly seconds: number;
  /** At full speed, of each arrangement. */
  readonly warmSeconds: number;
  readonly perSecond: number;
}

/** Medians of one arrangement under one load. */
export interface WorkersRow {
  readonly arrangement: string;
  /** Null: as fast as it goes. */
  readonly perSecond: number | null;
  readonly served: number;
  /** CPU µs a request. */
  readonly gatewayUs: number;
  readonly withGeneratorUs: number;
  /** Host and PostgreSQL too. */
  readonly everythingUs: number;
  /** To the one process on the same store, round by round. */
  readonly gatewayRatio: number;
  readonly withGeneratorRatio: number;
  readonly everythingRatio: number;
}

export const benchWorkers = (size: WorkersSize): Promise<WorkersRow[]> =>
  inScene("workers", async ({ host, gateway, onEnd }) => {
    const cluster = await Cluster.start(["synchronous_commit=on"]);
    onEnd(() => cluster.stop());
    const open = async (name: string, more: string): Promise<Gateway> => {
      const one = await gateway(name, withLimits(more));
      return { process: one, keys: await fundedKeys(one) };
    };
    const others = () => host.cpuUs() + cluster.cpuUs();
    const arrangements = new Map([
      ["one", [await open("one", `store: ${await cluster.database()}`)]],
      ["two workers", [await open("two", `store: ${await cluster.database()}\nworkers: 2`)]],
      [ONE_ON_SQLITE, [await open("one-sqlite", "")]],
      ["two workers, SQLite", [await open("two-sqlite", "workers: 2")]],
      ["two apart", [await open("a", ""), await open("b", "")]],
    ]);
    for (const gateways of arrangements.values()) await serve(gateways, null, size.warmSeconds, others);
    const rows: WorkersRow[] = [];
    for (const perSecond of [size.perSecond, null]) {
      const samples = new Map([...arrangements.keys()].map((name) => [name, [] as Sample[]]));
      for (let round = 0; round < size.rounds; round++) {
        for (const [name, gateways] of arrangements) {
          samples.get(name)!.push(await serve(gateways, perSecond, size.seconds, others));
        }
      }
      for (const [arrangement, all] of samples) {
        const base = samples.get(arrangement.endsWith("SQLite") ? ONE_ON_SQLITE : "one")!;
        rows.push({ arrangement, perSecond, ...rowOf(all, base) });
      }
    }
    return rows;
  });

const ONE_ON_SQLITE = "one, SQLite";

interface Gateway {
  readonly process: Measured;
  readonly keys: readonly FundedKey[];
}

interface Sample {
  readonly served: number;
  readonly gatewayUs: number;
  readonly withGeneratorUs: number;
  readonly everythingUs: number;
}

/** The load is spread over the gateways; of several, each has its part of the keys. */
async function serve(
  gateways: readonly Gateway[],
  perSecond: number | null,
  seconds: number,
  othersUs: () => number,
): Promise<Sample> {
  const gatewaysUs = () => gateways.reduce((sum, one) => sum + one.process.cpuUs(), 0);
  const [gatewayBefore, othersBefore, ownBefore] = [gatewaysUs(), othersUs(), process.cpuUsage()];
  const part = gateways.length;
  const runs = await Promise.all(
    gateways.map(({ process: { port }, keys }) =>
      storm(port, keys.slice(0, keys.length / part), {
        seconds,
        perSecond: perSecond === null ? null : perSecond / part,
        stream: false,
      }),
    ),
  );
  const own = process.cpuUsage(ownBefore);
  const count = runs.reduce((sum, run) => sum + run.count, 0);
  const gatewayUs = (gatewaysUs() - gatewayBefore) / count;
  const withGeneratorUs = gatewayUs + (own.user + own.system) / count;
  return {
    served: runs.reduce((sum, run) => sum + run.perSecond, 0),
    gatewayUs,
    withGeneratorUs,
    everythingUs: withGeneratorUs + (othersUs() - othersBefore) / count,
  };
}

function rowOf(samples: readonly Sample[], base: readonly Sample[]) {
  const of = (what: keyof Sample) => median(samples.map((one) => one[what]));
  const ratio = (what: keyof Sample) => median(samples.map((one, round) => one[what] / base[round]![what]));
  return {
    served: of("served"),
    gatewayUs: of("gatewayUs"),
    withGeneratorUs: of("withGeneratorUs"),
    everythingUs: of("everythingUs"),
    gatewayRatio: ratio("gatewayUs"),
    withGeneratorRatio: ratio("withGeneratorUs"),
    everythingRatio: ratio("everythingUs"),
  };
}

if (import.meta.main) {
  const rows = await benchWorkers({
    rounds: numberOption("rounds", 9),
    seconds: numberOption("seconds", 1.5),
    warmSeconds: numberOption("warm", 15),
    perSecond: numberOption("per-second", 1_000),
  });
  const cells = rows.map((row) => Object.values({ ...row, perSecond: row.perSecond ?? "full speed" }));
  console.log(table(Object.keys(rows[0]!), cells));
}
