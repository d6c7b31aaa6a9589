import { expect, test } from "bun:test";
import { json, rateLimited } from "../fakes/behaviours.ts";
import { startFakeHost } from "../fakes/host.ts";
import { chatText } from "../fakes/transcripts.ts";
import { Folder, GatewayProcess, simpleConfig } from "../process/gateway.ts";
import { describeOnPostgres } from "./fixture.ts";

describeOnPostgres("what several workers know of a host", (cluster) => {
  test("a host that asks one of them to wait is left alone by all of them", async () => {
    const busy = await startFakeHost(() => rateLimited(60));
    const well = await startFakeHost(() => json(chatText(["ok"], { input: 10, output: 1 }).whole));
    const store = await cluster.database();
    const folder = new Folder(
      simpleConfig([busy.port, well.port], `store: ${store}\nworkers: ${WORKERS}\n${UNLIMITED}`),
    );
    const gateway = await GatewayProcess.start(folder);
    try {
      const { key } = await gateway.keyWith(10);
      for (let sent = 0; sent < 40; sent++) {
        // A connection of its own, so that the kernel picks a worker again.
        const answer = await fetch(`${gateway.url}/v1/chat/completions`, {
          method: "POST",
          headers: { authorization: `Bearer ${key}`, connection: "close" },
          body: JSON.stringify({
            model: "test/model",
            max_tokens: 10,
            messages: [{ role: "user", content: "Hi" }],
          }),
        });
        expect(answer.status).toBe(200);
        await answer.text();
      }
      // Another may have asked it before it knew.
      expect(busy.requests.length).toBeLessThan(WORKERS - 1);
      expect(well.requests.length).toBe(40);
    } finally {
      await gateway.kill();
      folder.remove();
      await Promise.all([busy.close(), well.close()]);
    }
  }, 600_000);
});

const WORKERS = 4;
const UNLIMITED = "defaults: { accountless: { rpm_limit: null, tpm_limit: null } }\n";
