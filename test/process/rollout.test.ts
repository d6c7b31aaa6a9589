import { afterAll, expect, test } from "bun:test";
import { freePort } from "../../bench/processes.ts";
import { json, sse } from "../fakes/behaviours.ts";
import { gate } from "../fakes/gate.ts";
import { startFakeHost } from "../fakes/host.ts";
import { chatText } from "../fakes/transcripts.ts";
import { until } from "../fakes/until.ts";
import { Folder, GatewayProcess, simpleConfig } from "./gateway.ts";
import { RawClient } from "./raw-client.ts";

/** A gateway that is replaced behind a load balancer, as its clients see it. */
let pause = gate();

const host = await startFakeHost((request) => {
  const { stream } = request.json();
  const { events, whole } = chatText([" one", " two", " three"], { input: 10 });
  if (stream === true) return sse(events, { before: (n) => (n === 2 ? pause.passed : undefined) });
  return async (...to) => {
    await pause.passed;
    await json(whole)(...to);
  };
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

test("until the start is over, /readyz says so", async () => {
  const free = "      - { host: h0, model: bench-model, free: true }";
  const config = simpleConfig([host.port]).replace(/(routes:\n)/, `$1${free}\n`);
  const folder = new Folder(config);
  const port = freePort();
  pause = gate();
  // It asks the host whether the free route works.
  const starting = GatewayProcess.start(folder, { PORT: String(port) });
  const ready = () => fetch(`http://127.0.0.1:${port}/readyz`).then((response) => response.text());
  await until(async () => (await ready()) === "not ready: it is starting\n");
  pause.open();
  const gateway = await starting;
  expect(await ready()).toBe("ready\n");
  expect(await gateway.stop()).toBe(0);
  folder.remove();
});

const LEAVING = "shutdown_delay_ms: 30000";
const readiness = async (gateway: GatewayProcess) => (await gateway.get("/readyz")).text;
const versionOf = (gateway: GatewayProcess) =>
  until(async () => (await readiness(gateway)) === "not ready: it is stopping\n");

test("after a stop signal, it serves for shutdown_delay_ms: /readyz says no, and connections close with their answers", () =>
  withGateway(async (gateway, key) => {
    const idle = await RawClient.connect(gateway.url);
    expect(await idle.get("/readyz")).toEqual({ status: 200, closes: false, body: "ready\n" });
    const busy = await RawClient.connect(gateway.url);
    const answered = busy.post(key, CHAT);
    const streaming = await RawClient.connect(gateway.url);
    const streamed = streaming.post(key, { ...CHAT, stream: true });
    await streaming.sees(" one");

    gateway.signal("SIGTERM");
    await versionOf(gateway);
    // New connections, and old ones, are served.
    const late = await RawClient.connect(gateway.url);
    const lateStreamed = late.post(key, { ...CHAT, stream: true });
    await late.sees(" one");
    pause.open();
    expect(await answered).toMatchObject({ status: 200, closes: true });
    await busy.closing();
    // Its head had been sent before.
    expect(await streamed).toMatchObject({ status: 200, closes: false });
    expect((await streamed).body).toContain("[DONE]");
    expect(await streaming.post(key, CHAT)).toMatchObject({ status: 200, closes: true });
    expect(await lateStreamed).toMatchObject({ status: 200, closes: true });
    expect((await lateStreamed).body).toContain("[DONE]");
    await late.closing();
    expect(await idle.get("/readyz")).toMatchObject({ status: 503, closes: true });
    await idle.closing();
    // A refusal, and a path that there is not.
    for (const path of ["/v1/me", "/v1/embeddings"]) {
      const client = await RawClient.connect(gateway.url);
      expect(await client.get(path)).toMatchObject({ closes: true });
      await client.closing();
    }
  }, LEAVING));

test.each(["SIGTERM", "SIGINT"] as const)(
  "a second %s ends the delay: streams finish, the exit code is 0",
  (signal) =>
    withGateway(async (gateway, key) => {
      const streaming = await RawClient.connect(gateway.url);
      const streamed = streaming.post(key, { ...CHAT, stream: true });
      await streaming.sees(" one");
      gateway.signal("SIGTERM");
      await versionOf(gateway);
      // Two that come together are one that was passed on.
      await Bun.sleep(300);
      gateway.signal(signal);
      await refusesConnections(gateway);
      pause.open();
      expect((await streamed).body).toContain("[DONE]");
      expect(await gateway.ended()).toBe(0);
    }, LEAVING),
);

test("the delay over, it drains by itself", () =>
  withGateway(async (gateway) => {
    const idle = await RawClient.connect(gateway.url);
    expect((await idle.get("/healthz")).status).toBe(200);
    expect(await gateway.stop()).toBe(0);
    await idle.closing();
  }, "shutdown_delay_ms: 200"));
