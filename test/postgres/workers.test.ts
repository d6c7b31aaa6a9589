import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { json } from "../fakes/behaviours.ts";
import { startFakeHost } from "../fakes/host.ts";
import { chatText } from "../fakes/transcripts.ts";
import { until } from "../fakes/until.ts";
import { ADMIN, Folder, GatewayProcess, simpleConfig } from "../process/gateway.ts";
import { workersOf } from "../server/workers/processes.ts";
import { testWorkers } from "../server/workers/workers-cases.ts";
import { describeOnPostgres } from "./fixture.ts";

const CHAT = { model: "test/model", max_tokens: 10, messages: [{ role: "user", content: "Hello" }] };

describeOnPostgres("workers on one port", (cluster) => {
  testWorkers(() => cluster.database());

  test("workers without a disk need no folder, and one that is killed is replaced by another node", async () => {
    const host = await startFakeHost(() => json(chatText(["ok"], { input: 10, output: 1 }).whole));
    const store = await cluster.database();
    const folder = new Folder(simpleConfig([host.port], `store: ${store}\nworkers: 2\njournal: postgres\n`));
    const gateway = await GatewayProcess.start(folder);
    try {
      const { key } = await gateway.keyWith(1);
      const nodes = async (): Promise<string[]> =>
        (await gateway.get("/admin/nodes", ADMIN)).json.data.map(({ id }: { id: string }) => id);
      const before = await nodes();
      const [first] = workersOf(gateway.pid);
      process.kill(first!, "SIGKILL");
      await until(async () => {
        const ready = await gateway.get("/readyz").catch(() => null);
        return ready?.status === 200 && (await nodes()).length === before.length + 1;
      });
      for (let request = 0; request < 20; request++) {
        expect((await gateway.post("/v1/chat/completions", CHAT, key)).status).toBe(200);
      }
      expect((await gateway.audit()).json).toMatchObject({ ok: true, drift_nano: "0" });
      expect(await gateway.stop()).toBe(0);
      expect(existsSync(join(folder.path, "data"))).toBe(false);
    } finally {
      await gateway.kill();
      folder.remove();
      await host.close();
    }
  }, 600_000);
});
