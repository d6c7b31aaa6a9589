import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { json } from "../../fakes/behaviours.ts";
import { type FakeHost, startFakeHost } from "../../fakes/host.ts";
import { chatText } from "../../fakes/transcripts.ts";
import { until } from "../../fakes/until.ts";
import { ADMIN, Folder, GatewayProcess, simpleConfig } from "../../process/gateway.ts";
import { workersOf } from "./processes.ts";

/** Whatever store they share. */
export function testWorkers(database: () => Promise<string>): void {
  let host: FakeHost;
  let store: string;
  beforeAll(async () => {
    host = await startFakeHost(() => json(chatText(["ok"], { input: 10, output: 1 }).whole));
    store = await database();
  });
  afterAll(async () => {
    await host.close();
  });

  const config = (more = "") => simpleConfig([host.port], `store: ${store}\nworkers: 2\n${more}`);

  async function withGateway(
    run: (gateway: GatewayProcess, folder: Folder) => Promise<void>,
    more = "",
  ): Promise<void> {
    const folder = new Folder(config(more));
    const gateway = await GatewayProcess.start(folder);
    try {
      await run(gateway, folder);
    } finally {
      await gateway.kill();
      folder.remove();
    }
  }

  const CHAT = { model: "test/model", max_tokens: 10, messages: [{ role: "user", content: "Hello" }] };
  test("both serve, keys are shared, and a drain ends all of them", async () => {
    await withGateway(async (gateway) => {
      const { key } = await gateway.keyWith(1);
      for (let request = 0; request < 60; request++) {
        expect((await gateway.post("/v1/chat/completions", CHAT, key)).status).toBe(200);
      }
      // The key's 60 requests a minute are those of both together.
      expect((await gateway.post("/v1/chat/completions", CHAT, key)).status).toBe(429);
      const workers = workersOf(gateway.pid);
      expect(workers).toHaveLength(2);
      expect(await gateway.stop()).toBe(0);
      for (const pid of workers) expect(() => process.kill(pid, 0)).toThrow();
    });
  }, 600_000);

  test("after a stop signal, all of them serve on and say that they are not ready, until the second one", async () => {
    await withGateway(async (gateway) => {
      const { key } = await gateway.keyWith(1);
      // A terminal's Ctrl-C reaches the supervisor and every worker, and the supervisor passes it on.
      for (const pid of [gateway.pid, ...workersOf(gateway.pid)]) process.kill(pid, "SIGINT");
      await until(async () => {
        const ready = await Promise.all(Array.from({ length: 20 }, () => gateway.get("/readyz")));
        return ready.every(({ status }) => status === 503);
      });
      await Bun.sleep(300);
      for (let request = 0; request < 20; request++) {
        const { status, headers } = await gateway.post("/v1/chat/completions", CHAT, key);
        expect([status, headers.get("connection")]).toEqual([200, "close"]);
      }
      expect(await gateway.stop()).toBe(0);
    }, "shutdown_delay_ms: 60000\n");
  }, 600_000);

  test("when the supervisor is killed, its workers end, and the next one finds everything free", async () => {
    await withGateway(async (gateway, folder) => {
      const workers = workersOf(gateway.pid);
      await gateway.kill();
      const gone = (pid: number): boolean => {
        try {
          process.kill(pid, 0);
          return false;
        } catch {
          return true;
        }
      };
      await until(() => workers.every(gone));
      const next = await GatewayProcess.start(folder, { PORT: new URL(gateway.url).port });
      expect((await next.get("/readyz")).status).toBe(200);
      expect(await next.stop()).toBe(0);
    });
  }, 600_000);

  describe("of one gateway", () => {
    let folder: Folder;
    let gateway: GatewayProcess;
    beforeAll(async () => {
      folder = new Folder(config());
      gateway = await GatewayProcess.start(folder);
    }, 600_000);
    afterAll(async () => {
      await gateway.kill();
      folder.remove();
    });

    test("large bodies of who can pay for them are not unpaid work, however little of the credit a worker was granted", async () => {
      const { key } = await gateway.keyWith(50);
      // So that a worker has been granted a little.
      expect((await gateway.post("/v1/chat/completions", CHAT, key)).status).toBe(200);
      const large = { ...CHAT, messages: [{ role: "user", content: "x ".repeat(4_500_000) }] };
      // Two of three reach the same worker, and without credit it would read only one.
      for (let request = 0; request < 3; request++) {
        const { status, json } = await gateway.post("/v1/chat/completions", large, key);
        expect([status, json.error.code]).toEqual([400, "context_too_long"]);
      }
    }, 600_000);

    test("a port that another holds is not shared with it", async () => {
      const other = new Folder(config());
      const start = GatewayProcess.start(other, { PORT: new URL(gateway.url).port });
      await expect(start).rejects.toThrow("did not start");
      other.remove();
      expect(folder.path).not.toBe(other.path);
    }, 600_000);

    test("a worker that is killed is replaced, and the books agree", async () => {
      const { key } = await gateway.keyWith(1);
      const [first, second] = workersOf(gateway.pid);
      process.kill(first!, "SIGKILL");
      await until(() => {
        const now = workersOf(gateway.pid);
        return now.length === 2 && !now.includes(first!) && now.includes(second!);
      });
      await until(async () => (await gateway.get("/readyz")).status === 200);
      await until(async () => (await gateway.post("/v1/chat/completions", CHAT, key)).status === 200);
      expect((await gateway.audit()).json).toMatchObject({ ok: true, drift_nano: "0" });
    }, 600_000);

    test("all that derives from a claim ends with it, for both of them", async () => {
      const owner = await gateway.keyWith(1);
      const wallet = privateKeyToAccount(generatePrivateKey());
      const signed = async () => {
        const body = { address: wallet.address, chain_id: 1 };
        const { message } = (await gateway.post("/v1/auth/wallet", body)).json;
        return { message, signature: await wallet.signMessage({ message }) };
      };
      const claim = async () => gateway.post("/v1/me/claim", { wallet: await signed() }, owner.key);
      expect((await claim()).status).toBe(200);
      const { session } = (await gateway.post("/v1/auth/wallet/verify", await signed())).json;
      const replaced = await fetch(`${gateway.url}/v1/me/recovery`, {
        method: "POST",
        headers: { authorization: `Bearer ${session}`, "x-gateway-balance": owner.balance_id },
      });
      const { recovery_secret } = (await replaced.json()) as { recovery_secret: string };
      const made = (await gateway.post("/v1/keys", {}, recovery_secret)).json;
      const next = (await gateway.post(`/v1/keys/${made.id}/rotate`, undefined, made.key)).json;
      const keys = [made.key, next.key, owner.key] as const;
      const statuses = async (): Promise<Set<number>[]> => {
        const all = keys.map(() => new Set<number>());
        for (let request = 0; request < 8; request++)
          for (const [at, key] of keys.entries())
            all[at]!.add((await gateway.post("/v1/chat/completions", CHAT, key)).status);
        return all;
      };
      expect(await statuses()).toEqual([new Set([200]), new Set([200]), new Set([200])]);
      const undone = await gateway.send("DELETE", "/v1/me/claim", {}, owner.recovery_secret);
      expect([undone.status, undone.json.live_keys.length]).toEqual([200, 1]);
      expect(await statuses()).toEqual([new Set([401]), new Set([401]), new Set([200])]);
      for (let request = 0; request < 4; request++) expect((await claim()).status).toBe(400);
    }, 600_000);

    test("all credit is taken back, also what a worker that was killed had been granted", async () => {
      const { key, balance_id } = await gateway.keyWith(1);
      for (let request = 0; request < 20; request++) {
        expect((await gateway.post("/v1/chat/completions", CHAT, key)).status).toBe(200);
      }
      process.kill(workersOf(gateway.pid)[0]!, "SIGKILL");
      let takenNano = 0;
      await until(async () => {
        // Without an answer, the same is asked again.
        const debit = { balance_id, amount_usd: "all", idempotency_key: `all but ${takenNano}` };
        const { status, json } = await gateway.post("/admin/debits", debit, ADMIN);
        if (status === 200) takenNano += Math.round(json.amount_usd * 1e9);
        return takenNano === 1e9 - 20 * 20_000;
      });
      expect((await gateway.post("/v1/chat/completions", CHAT, key)).status).toBe(402);
      expect((await gateway.get("/v1/me", key)).json.balance_usd).toBe(0);
      expect((await gateway.audit()).json).toMatchObject({ ok: true, drift_nano: "0" });
    }, 600_000);
  });
}
