import { PAYMENT_MUTANTS } from "./mutants/payments.ts";
import { option } from "./option.ts";
import { simulatePayments } from "./payments.ts";
import { runSeeds } from "./seeds.ts";

/** So many `--payments`, with crashes, reorganisations, refunds and disputes. */
const payments = option("payments", 2_000);
await runSeeds({
  name: "sim:payments",
  seeds: 50,
  mutants: PAYMENT_MUTANTS,
  mutantOptions: ["--payments", "400"],
  run: async (seed) => ({ ...(await simulatePayments(seed, payments)) }),
  kept: "What is on the chain and at Stripe is what was credited.",
});
