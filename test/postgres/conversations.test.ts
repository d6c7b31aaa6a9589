import { afterAll, beforeAll, expect, test } from "bun:test";
import { json, status } from "../fakes/behaviours.ts";
import { type FakeHost, startFakeHost } from "../fakes/host.ts";
import { chatText } from "../fakes/transcripts.ts";
import { until } from "../fakes/until.ts";
import { type OpenGateway, open } from "../gateway/open.ts";
import { describeOnPostgres } from "./fixture.ts";

describeOnPostgres("conversations at several nodes", (cluster) => {
  const well = json(chatText(["ok"], { input: 10, output: 1 }).whole);
  let hosts: FakeHost[] = [];
  let gateways: OpenGateway[] = [];
  beforeAll(async () => {
    // The first host fails once.
    hosts = await Promise.all([
      startFakeHost((_, n) => (n === 0 ? status(503) : well)),
      startFakeHost(() => well),
    ]);
    const store = await cluster.database();
    gateways = await Promise.all([0, 1].map(() => open(config(hosts, store))));
  });
  afterAll(async () => {
    await Promise.all(gateways.map((gateway) => gateway.close()));
    await Promise.all(hosts.map((host) => host.close()));
  });

  test("one that left its first host is answered by the same one, whichever node has its next turn", async () => {
    const [one, other] = gateways;
    const { key } = await one!.key(1);
    /** The host that answered. */
    const turn = async (gateway: OpenGateway, session: string): Promise<string> => {
      const headers = { "x-session-id": session };
      const sent = { model: "test/model", max_tokens: 10, messages: [{ role: "user", content: "Hello" }] };
      const reply = await gateway.send("POST", "/v1/chat/completions", { bearer: key, json: sent, headers });
      const path = `/v1/receipts/${reply.headers.get("x-gateway-receipt")}`;
      return (await gateway.send("GET", path, { bearer: key })).json.host;
    };
    expect(await turn(one!, "moved")).toBe("h1");
    await until(async () => (await turn(other!, "moved")) === "h1");
    expect(await turn(other!, "new")).toBe("h0");
    expect(await turn(one!, "new")).toBe("h0");
  }, 600_000);
});

const config = (hosts: readonly FakeHost[], store: string): string => `
hosts:
${hosts.map(({ url }, at) => `  - { id: h${at}, base_url: "${url}/v1", speaks: [chat.completions] }`).join("\n")}
models:
  - id: test/model
    context_length: 100000
    max_output_tokens: 1000
    price: { input: 1, output: 1 }
    routes: [${hosts.map((_, at) => `{ host: h${at}, model: m }`).join(", ")}]
store: ${store}
`;
