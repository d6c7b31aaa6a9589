import { expect, test } from "bun:test";
import { CLAIM_MUTANTS } from "./claims.ts";
import { GATEWAY_MUTANTS } from "./gateway.ts";
import { HOLD_MUTANTS } from "./holds.ts";
import { LEASE_MUTANTS } from "./leases.ts";
import { hunt, SEEDS } from "./mutant.ts";
import { TAKE_BACK_MUTANTS } from "./take-backs.ts";
import { TAKING_MUTANTS } from "./taking.ts";

test.each([
  ["sim:holds", HOLD_MUTANTS, ["test/sim/run-holds.ts"]],
  ["sim", GATEWAY_MUTANTS, ["test/sim/run.ts", "--steps", "30"]],
  ["sim:nodes", LEASE_MUTANTS, ["test/sim/run-nodes.ts"]],
  ["sim:claims", CLAIM_MUTANTS, ["test/sim/run-claims.ts", "--steps", "60"]],
  ["sim:take-backs", TAKE_BACK_MUTANTS, ["test/sim/run-take-backs.ts", "--histories", "40"]],
  ["sim:taking", TAKING_MUTANTS, ["test/sim/run-taking.ts", "--steps", "400"]],
] as const)(
  "%s notices every rule that is broken on purpose",
  async (_, mutants, program) => {
    const missed: string[] = [];
    for await (const [{ breaks }, caught] of hunt(mutants, program, SEEDS))
      if (caught === null) missed.push(breaks);
    expect(missed).toEqual([]);
  },
  600_000,
);
