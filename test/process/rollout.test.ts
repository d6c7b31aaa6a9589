import { afterAll, beforeAll, expect, test } from "bun:test";
import { json, sse } from "../fakes/behaviours.ts";
import { gate } from "../fakes/gate.ts";
import { type FakeHost, startFakeHost } from "../fakes/host.ts";
import { chatText } from "../fakes/transcripts.ts";
import { until } from "../fakes/until.ts";
import { Folder, GatewayProcess, simpleConfig } from "./gateway.ts";
import { RawClient } from "./raw-client.ts";

/** A gateway that is replaced behind a load balancer, as its clients see it. */
let host: FakeHost;
let pause = gate();

beforeAll(async () => {
  host = await startFakeHost((request) => {
    const { stream } = request.json();
    const { events, whole } = chatText([" one", " two", " three"], { input: 10 });
    if (stream === true) return sse(events, { before: (n) => (n === 2 ? pause.passed : undefined) });
    return async (...to) => {
      await pause.passed;
      await json(whole)(...to);
    };
  });
});
afterAll(() => host.close());

const CHAT = { model: "test/model", max_tokens: 30, messages: [{ role: "user", content: "Hello" }] };

async function withGateway(
  run: (gateway: GatewayProcess, key: string) => Promise<void>,
  more = "",
): Promise<void> {
  const folder = new Folder(simpleConfig([host.port], more));
  pause = gate();
  const gateway = await GatewayProcess.start(folder);
  try {
    const { key } = await gateway.keyWith(1);
    await run(gateway, key);
  } finally {
    pause.open();
    await gateway.kill();
    folder.remove();
  }
}

const refusesConnections = (gateway: GatewayProcess) =>
  until(() =>
    fetch(`${gateway.url}/healthz`).then(
      () => false,
      () => true,
    ),
  );

test("a request whose body was still on its way when SIGTERM came is answered, however long its host takes", () =>
  withGateway(async (gateway, key) => {
    const client = await RawClient.connect(gateway.url);
    const { head, body } = client.chat(key, { ...CHAT, stream: true });
    client.write(head + body.slice(0, 10));
    // By the time that this is answered, the gateway has seen the request.
    await gateway.get("/healthz");
    const ended = gateway.stop();
    await refusesConnections(gateway);
    client.write(body.slice(10));
    // Longer than clients are left to take the last frames of what has settled.
    await Bun.sleep(2_500);
    pause.open();
    expect((await client.answer()).body).toContain("[DONE]");
    expect(await ended).toBe(0);
  }));
