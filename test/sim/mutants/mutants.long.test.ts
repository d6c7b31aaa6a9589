import { expect, test } from "bun:test";
import { SCENARIOS } from "../scenarios.ts";
import { hunt } from "./mutant.ts";

test.each(Object.entries(SCENARIOS))(
  "%s notices every rule that is broken on purpose",
  async (name, { mutants }) => {
    const missed: string[] = [];
    for await (const [{ breaks }, caught] of hunt(name, mutants)) if (caught === null) missed.push(breaks);
    expect(missed).toEqual([]);
  },
  600_000,
);
