import { expect, test } from "bun:test";
import type { RunningSums } from "../../src/ledger/counter-cache.ts";
import { type NanoUsd, ZERO_USD } from "../../src/units/usd.ts";
import { json } from "../fakes/behaviours.ts";
import { hostRow, startFakeHost } from "../fakes/host.ts";
import { openTestGateway, read, requestBody } from "./test-gateway.ts";

test("books that cannot be read cost one request, which gets an error, and not the process", async () => {
  let reads = 0;
  const sums: RunningSums = {
    spent() {
      reads += 1;
      throw new Error("disk I/O error");
    },
    credited: () => {
      throw new Error("disk I/O error");
    },
  };
  const unhandled: unknown[] = [];
  const noteRejection = (error: unknown) => void unhandled.push(error);
  process.on("unhandledRejection", noteRejection);
  const host = await startFakeHost(() => json({}));
  const gateway = await openTestGateway([hostRow(host)], { sums });
  try {
    const answer = await gateway.send("chat.completions", requestBody("chat.completions"));
    expect(answer.status).toBe(500);
    expect(JSON.parse(await read(answer)).error.code).toBe("internal_error");
    await new Promise((resolve) => setImmediate(resolve));
    expect(unhandled).toEqual([]);
    // Whether its balance can pay, and then what admission has to know.
    expect({ faults: gateway.faults.length, reads }).toEqual({ faults: 1, reads: 2 });
  } finally {
    process.off("unhandledRejection", noteRejection);
    await gateway.close();
    await host.close();
  }
});

test("a request that finds room time and again, and loses it each time to others, is refused by that limit, with a time to retry", async () => {
  const host = await startFakeHost(() => json({}));
  const gateway = await openTestGateway([hostRow(host)]);
  const [some, none] = [1 as NanoUsd, ZERO_USD];
  const taken = { limit: some, spent: none, held: some, amount: some, worst: some };
  gateway.ledger.admit = () => ({ what: "balance", available: none, ...taken });
  let found = 0;
  gateway.ledger.replenish = async () => {
    found += 1;
    return "room" as const;
  };
  const answer = await gateway.send("chat.completions", requestBody("chat.completions"));
  expect(answer.status).toBe(402);
  expect(answer.headers["retry-after"]).toBe("2");
  expect({ faults: gateway.faults, many: found > 10 }).toEqual({ faults: [], many: true });
  await gateway.close();
  await host.close();
});
