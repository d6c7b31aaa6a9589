import { CLAIMS } from "./claims.ts";
import { simulate } from "./gateway.ts";
import { HOLDS } from "./holds.ts";
import { LEASES } from "./leases.ts";
import { GATEWAY_MUTANTS } from "./mutants/gateway.ts";
import { NODES } from "./nodes.ts";
import { PAYMENTS } from "./payments.ts";
import { type Scenario, scenario } from "./scenario.ts";
import { TAKE_BACKS } from "./take-backs.ts";
import { TAKING } from "./taking.ts";

const OLD = { counts: [], steps: () => 0, fill() {} } as const;

/** `bun run sim` is the gateway, `bun run sim:<name>` any other. */
export const SCENARIOS = {
  gateway: scenario({
    ...OLD,
    options: { steps: 1_000 },
    seeds: 1,
    mutants: { rules: GATEWAY_MUTANTS, options: ["--steps", "30"] },
    run: async (seed, { steps }, onStep) => ({
      ...(await simulate(seed, steps, (step) => onStep?.(step, steps))),
    }),
    says({ simulatedHours = 0, free, overAllowance, overRpm, overFreeRpm, overTpm, ...counts }) {
      return [
        `${simulatedHours.toFixed(1)} simulated hours, ${listed(counts)}`,
        `Free requests: ${free} reached a host; refused were ${overAllowance} by the day's allowance, ${overRpm} by the key's requests a minute, ${overFreeRpm} by the Open Tier's, ${overTpm} by the key's tokens.`,
      ];
    },
    kept: "No cap, rate or allowance crossed, nothing refused for one that had room, no acknowledged answer lost, no receipt doubled, drift 0.",
  }),

  nodes: NODES,
  leases: LEASES,
  /** Streams whose holds follow them. */
  holds: HOLDS,

  taking: TAKING,
  payments: PAYMENTS,
  "take-backs": TAKE_BACKS,

  /** An owner, a thief and the operator with every credential. */
  claims: CLAIMS,
} as const satisfies Readonly<Record<string, Scenario>>;

export type ScenarioName = keyof typeof SCENARIOS;

export const listed = (totals: Readonly<Record<string, number>>): string =>
  `${Object.entries(totals)
    .map(([name, count]) => `${Math.round(count)} ${name}`)
    .join(", ")}.`;
