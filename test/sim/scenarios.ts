import { CLAIMS } from "./claims.ts";
import { GATEWAY } from "./gateway.ts";
import { HOLDS } from "./holds.ts";
import { LEASES } from "./leases.ts";
import { NODES } from "./nodes.ts";
import { PAYMENTS } from "./payments.ts";
import type { Scenario } from "./scenario.ts";
import { TAKE_BACKS } from "./take-backs.ts";
import { TAKING } from "./taking.ts";

/** `bun run sim` is the gateway, `bun run sim:<name>` any other. */
export const SCENARIOS = {
  gateway: GATEWAY,
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
