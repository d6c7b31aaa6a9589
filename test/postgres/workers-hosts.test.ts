import { expect, test } from "bun:test";
import { systemClock } from "../../src/units/clock.ts";
import { json, rateLimited } from "../fakes/behaviours.ts";
import { type FakeHost, startFakeHost } from "../fakes/host.ts";
import { type CacheUse, cachingHost, PromptCache } from "../fakes/prompt-cache.ts";
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
    const gateway = await GatewayProcess.start(folder, {}, ["src/main.ts"]);
    try {
      const { key } = await gateway.keyWith(10);
      for (let sent = 0; sent < 40; sent++) {
        // A connection of its own, so that the kernel picks a worker anew.
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
      // Another may have asked it before it heard.
      expect(busy.requests.length).toBeLessThan(WORKERS - 1);
      expect(well.requests.length).toBe(40);
    } finally {
      await gateway.kill();
      folder.remove();
      await Promise.all([busy.close(), well.close()]);
    }
  }, 60_000);

  test("a chat is read from one host's cache from its second turn on, whichever worker has a turn", async () => {
    const uses: CacheUse[] = [];
    const hosts = await Promise.all(
      [0, 1, 2].map(() => startFakeHost(cachingHost(new PromptCache(systemClock), uses))),
    );
    const folder = new Folder(caching(hosts, await cluster.database()));
    const gateway = await GatewayProcess.start(folder, {}, ["src/main.ts"]);
    try {
      const { key } = await gateway.keyWith(10);
      const messages = [{ role: "user", content: "Question 0?" }];
      for (let turn = 1; turn <= 10; turn++) {
        const answer = await fetch(`${gateway.url}/v1/messages`, {
          method: "POST",
          headers: { authorization: `Bearer ${key}`, connection: "close" },
          body: JSON.stringify({ model: "test/model", max_tokens: 10, system: PREFIX, messages }),
        });
        expect(answer.status).toBe(200);
        await answer.text();
        messages.push(
          { role: "assistant", content: "Fine." },
          { role: "user", content: `Question ${turn}?` },
        );
      }
      const shares = uses.map(({ read, written, rest }) => read / (read + written + rest));
      expect(shares[0]).toBe(0);
      for (const share of shares.slice(1)) expect(share).toBeGreaterThan(0.99);
    } finally {
      await gateway.kill();
      folder.remove();
      await Promise.all(hosts.map((host) => host.close()));
    }
  }, 60_000);
});

/** 20,000 tokens, by the fake hosts' count. */
const PREFIX = "Every word of this counts. ".repeat(3_000);

const caching = (hosts: readonly FakeHost[], store: string): string => `
hosts:
${hosts.map(({ url }, at) => `  - { id: h${at}, base_url: "${url}/v1", speaks: [messages], auto_cache: true }`).join("\n")}
models:
  - id: test/model
    context_length: 200000
    max_output_tokens: 1000
    price: { input: 1, output: 1 }
    routes: [${hosts.map((_, at) => `{ host: h${at}, model: m }`).join(", ")}]
routing: { order: price }
store: ${store}
workers: ${WORKERS}
${UNLIMITED}`;

const WORKERS = 4;
const UNLIMITED = "defaults: { accountless: { rpm_limit: null, tpm_limit: null } }\n";
