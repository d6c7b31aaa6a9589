import { below, flap, type Minute } from "./flapping.ts";
import { plotFlapping } from "./flapping-plot.ts";

/**
 * `bun run test/sim/flapping-run.ts [--seed N] [--minutes M] [--plot FILE]`: half of the hosts flapping, with
 * and without health.
 */
const seed = Number(option("seed") ?? 1);
const minutes = Number(option("minutes") ?? 60);
const plot = option("plot");

const started = performance.now();
const knowing = await flap({ seed, minutes });
const blind = await flap({ seed, minutes, blind: true });
report("with health", knowing.whole);
report("without", blind.whole);
console.log(
  `${minutes} simulated minutes, twice, in ${((performance.now() - started) / 1_000).toFixed(1)} s`,
);
if (plot !== undefined) await Bun.write(plot, plotFlapping(knowing, blind));

function report(name: string, { requests, served, attempts, firstTokensMs }: Minute): void {
  const seconds = (share: number) => `${(below(share, firstTokensMs) / 1_000).toFixed(2)} s`;
  console.log(
    `${name}: ${requests} requests, ${((served / requests) * 100).toFixed(2)}% served, ${(attempts / requests).toFixed(3)} attempts a request, first token p50 ${seconds(0.5)}, p99 ${seconds(0.99)}, p99.9 ${seconds(0.999)}`,
  );
}

function option(name: string): string | undefined {
  const at = process.argv.indexOf(`--${name}`);
  return at === -1 ? undefined : process.argv[at + 1];
}
