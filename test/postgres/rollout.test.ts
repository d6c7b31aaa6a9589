import { afterAll, beforeAll, expect, test } from "bun:test";
import { json, sse } from "../fakes/behaviours.ts";
import { type FakeHost, startFakeHost } from "../fakes/host.ts";
import { chatText } from "../fakes/transcripts.ts";
import { until } from "../fakes/until.ts";
import { Balancer } from "../process/balancer.ts";
import { Folder, GatewayProcess, simpleConfig } from "../process/gateway.ts";
import { RawClient } from "../process/raw-client.ts";
import { describeOnPostgres } from "./fixture.ts";

describeOnPostgres("gateways behind a load balancer", (cluster) => {
  const CHAT = { model: "test/model", max_tokens: 10, messages: [{ role: "user", content: "Hello" }] };
  const CLIENTS = 6;
  let host: FakeHost;
  beforeAll(async () => {
    host = await startFakeHost((request) => {
      const { events, whole } = chatText([" one", " two", " three"], { input: 10 });
      if (request.json().stream === true) return sse(events, { before: () => Bun.sleep(20) });
      return async (wire, seen) => {
        await Bun.sleep(50);
        await json(whole)(wire, seen);
      };
    });
  });
  afterAll(() => host.close());

  test("restarted one after the other, they give no client an error", async () => {
    const limits = "defaults: { accountless: { rpm_limit: null, tpm_limit: null } }";
    const config = simpleConfig(
      [host.port],
      `store: ${await cluster.database()}\nshutdown_delay_ms: 1000\n${limits}`,
    );
    const folders = [new Folder(config), new Folder(config)];
    const start = (folder: Folder, port: string) => GatewayProcess.start(folder, { PORT: port });
    const gateways = await Promise.all(folders.map((folder) => start(folder, "0")));
    const balancer = await Balancer.start(gateways.map(({ url }) => url));
    await until(() => balancer.serving.length === 2);
    const { key } = await gateways[0]!.keyWith(10);

    let rolling = true;
    let served = 0;
    const errors: string[] = [];
    /** Keeps its connection as long as the answers allow. */
    const client = async (stream: boolean) => {
      let connection = await RawClient.connect(balancer.url);
      while (rolling) {
        try {
          const { status, closes, body } = await connection.post(key, { ...CHAT, stream });
          if (status !== 200 || (stream && !body.includes("[DONE]"))) errors.push(`${status} ${body}`);
          served += 1;
          if (closes) connection = await RawClient.connect(balancer.url);
        } catch (error) {
          errors.push(String(error));
          connection = await RawClient.connect(balancer.url);
        }
      }
    };
    const clients = Array.from({ length: CLIENTS }, (_, n) => client(n % 2 === 0));

    for (const [n, gateway] of gateways.entries()) {
      expect(await gateway.stop()).toBe(0);
      const before = served;
      gateways[n] = await start(folders[n]!, new URL(gateway.url).port);
      await until(() => balancer.serving.length === 2 && served > before + CLIENTS);
    }
    rolling = false;
    await Promise.all(clients);
    expect(errors).toEqual([]);
    expect((await gateways[0]!.audit()).json).toMatchObject({ ok: true, drift_nano: "0" });

    balancer.stop();
    for (const gateway of gateways) expect(await gateway.stop()).toBe(0);
    for (const folder of folders) folder.remove();
  }, 600_000);
});
