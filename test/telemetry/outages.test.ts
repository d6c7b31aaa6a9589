import { expect, test } from "bun:test";
import { faultsAndOutagesTo } from "../../src/telemetry/outages.ts";
import { StoreUnreachable } from "../../src/units/errors/bookkeeping.ts";
import { ManualClock } from "../fakes/clock.ts";

test("an outage is logged once with its cause, then every ten seconds with how many requests it hit", () => {
  const clock = new ManualClock();
  const logged: unknown[] = [];
  const note = faultsAndOutagesTo((event, fields) => logged.push([event, fields]), clock);
  for (let n = 0; n < 5; n++) note(new StoreUnreachable("no answer"), `rcpt_${n}`);
  clock.advance(10_000);
  note(new StoreUnreachable("still none"), "rcpt_5");
  note(new Error("a mistake"), "rcpt_6");
  expect(logged).toEqual([
    ["store unreachable", { receipt: "rcpt_0", error: "no answer" }],
    ["store unreachable", { receipt: "rcpt_5", error: "still none", more: 4 }],
    ["fault", { receipt: "rcpt_6", error: expect.stringContaining("a mistake") }],
  ]);
});
