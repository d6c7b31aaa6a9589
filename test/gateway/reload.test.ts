import { expect, test } from "bun:test";
import { type Gate, gate } from "../fakes/gate.ts";
import { until } from "../fakes/until.ts";
import { open } from "./open.ts";

test("of reloads that overlap, the file as it was read last is in force", async () => {
  let held: Gate<void> | null = null;
  const ollama = Bun.serve({
    port: 0,
    async fetch() {
      const waitFor = held;
      held = null;
      await waitFor?.passed;
      return Response.json({ models: [] });
    },
  });
  const gateway = await open("grace_ms: 1000\n", { OLLAMA_HOST: ollama.url.origin });
  try {
    const slow = gate();
    held = slow;
    gateway.folder.configure("grace_ms: 2000\n");
    const first = gateway.gateway.reload();
    await until(() => held === null);
    gateway.folder.configure("grace_ms: 3000\n");
    const second = gateway.gateway.reload();
    // Long enough for a reload that does not wait its turn.
    await Promise.race([second, Bun.sleep(100)]);
    slow.open();
    expect(await Promise.all([first, second])).toEqual([null, null]);
    expect(gateway.gateway.config.graceMs).toBe(3_000);
  } finally {
    await gateway.close();
    await ollama.stop(true);
  }
});
