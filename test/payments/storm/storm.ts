import { parseArgs } from "node:util";
import { LocalChain } from "../../fakes/chain/chain.ts";
import type { SetUpName } from "./set-ups.ts";
import { BLOCKS_IN_EPOCH, World } from "./world.ts";

/**
 * Customers pay by x402 while processes are killed, blocks are undone, transactions are dropped and replaced, and the
 * chain's node does not answer or is behind. Once that is over, what moved on the chain is what is credited.
 *
 *     bun run test/payments/storm/storm.ts --set-up sqlite --payments 200 --rounds 50 --seed 1
 *
 * A round has one kill and one reorganisation. `--quick` has gateways look at their payments more often, and everything
 * else happen as much faster.
 */
export async function storm(options: StormOptions, progress: (line: string) => void): Promise<StormReport> {
  const chain = await LocalChain.start({ blocksInEpoch: BLOCKS_IN_EPOCH });
  const world = await World.open(chain, options);
  try {
    return await world.play(progress);
  } finally {
    await world.end();
    chain.stop();
  }
}

export interface StormOptions {
  readonly setUp: SetUpName;
  readonly payments: number;
  readonly rounds: number;
  readonly seed: number;
  readonly isQuick: boolean;
}

export interface StormReport {
  /** What is wrong once all is quiet; empty where nothing is. */
  readonly findings: readonly string[];
  readonly orders: number;
  readonly signed: number;
  readonly transfers: number;
  readonly payments: Readonly<Record<string, number>>;
  readonly faults: Readonly<Record<string, number>>;
  /** The longest that a payment took to be settled after the last fault, or after its order where that was later. */
  readonly slowestMs: number;
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      "set-up": { type: "string", default: "sqlite" },
      payments: { type: "string", default: "20" },
      rounds: { type: "string", default: "5" },
      seed: { type: "string", default: "1" },
      quick: { type: "boolean", default: false },
    },
  });
  const report = await storm(
    {
      setUp: values["set-up"] as SetUpName,
      payments: Number(values.payments),
      rounds: Number(values.rounds),
      seed: Number(values.seed),
      isQuick: values.quick,
    },
    (line) => console.error(`${(performance.now() / 1_000).toFixed(1)} s: ${line}`),
  );
  console.log(report);
  process.exit(report.findings.length === 0 ? 0 : 1);
}
