import { LocalChain, NETWORK, USDC } from "../test/fakes/chain/chain.ts";
import { ascending, median, percentile } from "./figures.ts";
import { chatBody, fundedKey, targetOf } from "./gateway-process.ts";
import { cpuOf, served, type Target } from "./load.ts";
import { numberOption } from "./options.ts";
import type { Measured } from "./processes.ts";
import { inScene } from "./scene.ts";

/**
 * What a request costs that pays from its balance where payments are configured: its CPU ÷ that of a gateway without
 * them, in turns.
 *
 *     bun run bench payments --rounds 15 --requests 2000
 */
export const benchPayments = (rounds: number, requests: number): Promise<number[]> =>
  inScene("payments", async ({ gateway: open, onEnd }) => {
    const chain = await LocalChain.start();
    onEnd(() => chain.stop());
    const subject = async (name: string, more: string): Promise<Subject> => {
      const gateway = await open(name, { more });
      return { gateway, target: targetOf(gateway, (await fundedKey(gateway, 1_000)).key) };
    };
    const without = await subject("without", "");
    const paid = await subject("with", payments(chain.rpc, await chain.gasKey()));
    // What has not run yet is slow once, for everybody.
    for (const one of [without, paid]) await cpuUs(one, 2 * requests);
    const ratios: number[] = [];
    for (let round = 0; round < rounds; round++) {
      // Who comes first changes: the machine may be getting slower, or faster.
      const first = round % 2 === 0 ? await cpuUs(without, requests) : null;
      const ours = await cpuUs(paid, requests);
      ratios.push(ours / (first ?? (await cpuUs(without, requests))));
    }
    return ratios;
  });

interface Subject {
  readonly gateway: Measured;
  readonly target: Target;
}

async function cpuUs({ gateway, target }: Subject, requests: number): Promise<number> {
  const plan = { body: chatBody("ping"), connections: 16, requests };
  return (await cpuOf(gateway, () => served(target, plan))).us / requests;
}

const payments = (rpc: string, gasKey: string): string => `
payments:
  x402:
    - { network: "${NETWORK}", asset: "${USDC}", pay_to: "0x${"1".repeat(40)}", rpc: "${rpc}", gas_key: "${gasKey}" }
`;

if (import.meta.main) {
  const ratios = ascending(await benchPayments(numberOption("rounds", 15), numberOption("requests", 2_000)));
  const quartiles = [0.25, 0.75].map((part) => percentile(ratios, part).toFixed(3)).join(" to ");
  console.log("CPU a request with payments configured ÷ without, in turns:");
  console.log(`median ${median(ratios).toFixed(3)}, quartiles ${quartiles}, of ${ratios.length} rounds`);
}
