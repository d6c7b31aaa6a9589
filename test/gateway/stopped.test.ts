import { heapStats } from "bun:jsc";
import { expect, test } from "bun:test";
import { open } from "./open.ts";

/** What a gateway needs is tens of megabytes, which tests that open many in one process would add up. */
test("a gateway that has been stopped is kept by nothing", async () => {
  const afterMore = async (count: number): Promise<number> => {
    for (let opened = 0; opened < count; opened++) {
      const gateway = await open("");
      await gateway.chat((await gateway.key(1)).key, { model: "sim/echo" });
      await gateway.close();
    }
    Bun.gc(true);
    return heapStats().heapSize / 1e6;
  };
  const before = await afterMore(2);
  expect((await afterMore(5)) - before).toBeLessThan(40);
});
