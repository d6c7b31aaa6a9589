import { CLAIMS } from "./claims.ts";
import { simulate } from "./gateway.ts";
import { HOLDS } from "./holds.ts";
import { simulateLeases } from "./leases.ts";
import { GATEWAY_MUTANTS } from "./mutants/gateway.ts";
import { LEASE_MUTANTS } from "./mutants/leases.ts";
import { TAKING_MUTANTS } from "./mutants/taking.ts";
import { simulateNodes } from "./nodes.ts";
import { PAYMENTS } from "./payments.ts";
import { type Scenario, scenario } from "./scenario.ts";
import { TAKE_BACKS } from "./take-backs.ts";
import { simulateTaking } from "./taking.ts";

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

  /**
   * Ledgers that share limits, and nodes that remember keys; with `--sqlite`, the Authority and the registry are those of a
   * keeper; with `--regions`, half of the ledgers are in another region.
   */
  nodes: scenario({
    ...OLD,
    options: { steps: 400, sqlite: false, regions: false },
    seeds: 1_000,
    mutants: { rules: LEASE_MUTANTS },
    async run(seed, { steps, sqlite, regions }) {
      const store = sqlite ? "sqlite" : "memory";
      const grants = await simulateNodes(seed, steps, store, regions ? 2 : 1);
      const leases = await simulateLeases(seed, steps, store);
      return { ...named("grants", grants), ...named("leases", leases) };
    },
    kept: "No limit crossed, nothing lost that was answered, nothing accepted after its revoke was answered, nobody refused who had room, credit spent to the last worst case.",
  }),

  /** Streams whose holds follow them. */
  holds: HOLDS,

  /** Limits that change under streams; with `--sqlite`, the Authority of a keeper. */
  taking: scenario({
    ...OLD,
    options: { nodes: 1, steps: 1_000, sqlite: false },
    seeds: 100,
    mutants: { rules: TAKING_MUTANTS, options: ["--steps", "400"] },
    run: (seed, { nodes, steps, sqlite }) => simulateTaking(seed, steps, nodes, sqlite ? "sqlite" : "memory"),
    kept: "No limit crossed.",
  }),

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

const named = (what: string, counts: object): Record<string, number> =>
  Object.fromEntries(Object.entries(counts).map(([name, count]) => [`${what} ${name}`, count]));
