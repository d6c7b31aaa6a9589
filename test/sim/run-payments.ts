import { showMutants } from "./mutants/mutant.ts";
import { PAYMENT_MUTANTS } from "./mutants/payments.ts";
import { option } from "./option.ts";
import { simulatePayments } from "./payments.ts";

/** `bun run sim:payments --seed N --seeds K --payments P`: so many payments each, with crashes, reorganisations, refunds and disputes. */
const seed = option("seed", 1);
const seeds = option("seeds", 50);
const payments = option("payments", 2_000);

if (process.argv.includes("--mutants")) {
  await showMutants(PAYMENT_MUTANTS, ["test/sim/run-payments.ts", "--payments", "400"]);
  process.exit();
}

const totals: Record<string, number> = {};
for (let one = seed; one < seed + seeds; one++) {
  const done = await simulatePayments(one, payments).catch((error: unknown) => {
    console.error(`replay it with: bun run sim:payments --seed ${one} --seeds 1 --payments ${payments}`);
    throw error;
  });
  process.send?.(one);
  for (const [name, count] of Object.entries(done)) totals[name] = (totals[name] ?? 0) + count;
}
console.log(
  Object.entries(totals)
    .map(([name, count]) => `${count} ${name}`)
    .join(", "),
);
