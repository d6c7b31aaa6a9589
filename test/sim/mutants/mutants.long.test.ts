import { expect, test } from "bun:test";
import { CLAIM_MUTANTS } from "./claims.ts";
import { GATEWAY_MUTANTS } from "./gateway.ts";
import { HOLD_MUTANTS } from "./holds.ts";
import { LEASE_MUTANTS } from "./leases.ts";
import { hunt, SEEDS } from "./mutant.ts";
import { TAKE_BACK_MUTANTS } from "./take-backs.ts";
import { TAKING_MUTANTS } from "./taking.ts";

test.each([
  ["sim:holds", HOLD_MUTANTS, ["test/sim/run-holds.ts"], SEEDS],
  ["sim", GATEWAY_MUTANTS, ["test/sim/run.ts", "--steps", "30"], SEEDS],
  ["sim:nodes", LEASE_MUTANTS, ["test/sim/run-nodes.ts"], SEEDS],
  // The rarest of its faults needs two claims of one balance.
  ["sim:claims", CLAIM_MUTANTS, ["test/sim/run-claims.ts", "--steps", "60"], 6 * SEEDS],
  // A stream has to grow on one node while a dispute takes back what another has given back.
  ["sim:take-backs", TAKE_BACK_MUTANTS, ["test/sim/run-take-backs.ts", "--histories", "40"], 4 * SEEDS],
  ["sim:taking", TAKING_MUTANTS, ["test/sim/run-taking.ts", "--steps", "400"], SEEDS],
] as const)(
  "%s notices every rule that is broken on purpose",
  async (_, mutants, program, seeds) => {
    const missed: string[] = [];
    for await (const [{ breaks }, caught] of hunt(mutants, program, seeds))
      if (caught === null) missed.push(breaks);
    expect(missed).toEqual([]);
  },
  600_000,
);
