import { expect, test } from "bun:test";
import { json } from "../fakes/behaviours.ts";
import { closeAll } from "../fakes/close-all.ts";
import { type Gate, gate } from "../fakes/gate.ts";
import { startFakeHost } from "../fakes/host.ts";
import { chatText } from "../fakes/transcripts.ts";
import { until } from "../fakes/until.ts";
import { type OpenGateway, open } from "./open.ts";

let answering: Gate<void>;
const host = await startFakeHost(() => async (wire, request) => {
  await answering.passed;
  await json(chatText(["Hi"]).whole)(wire, request);
});

const opened = (more: string, generation: string): Promise<OpenGateway> => {
  answering = gate();
  return open(`
hosts: [{ id: h, base_url: "${host.url}/v1", speaks: [chat.completions]${more} }]
models:
  - id: test/model
    context_length: 1000
    max_output_tokens: 100
    price: { input: 0, output: 10 }
    routes: [{ host: h, model: host-model }]
${generation}`);
};
const inUse = ({ gateway }: OpenGateway) => Object.fromEntries(gateway.inUse());

test("a request that waits for its host has a hold, a slot, a deadline and a socket, and one that has ended has nothing", async () => {
  const gateway = await opened("", "");
  const key = await gateway.key(1);
  expect(inUse(gateway)).toEqual({});
  const answer = gateway.chat(key.key);
  await host.arrived(0);
  expect(inUse(gateway)).toMatchObject({
    "open holds": 1,
    [`open holds of key ${key.id}`]: 1,
    [`held on balance:${key.balance_id}`]: 1_000_000,
    "requests in flight at h": 1,
    deadlines: 1,
    [`sockets to ${host.url}`]: 1,
    "HTTP requests": 1,
  });
  answering.open();
  expect((await answer).status).toBe(200);
  await until(() => gateway.gateway.inUse().length === 0);
  await gateway.close();
});

test("a gateway that stops logs what a host that never answers has kept", async () => {
  const gateway = await opened(", on_disconnect: drain", "drain_ms: 0");
  const seen = host.requests.length;
  const key = await gateway.key(1);
  const left = gateway.chat(key.key).catch(() => null);
  await host.arrived(seen);
  gateway.leavesOpen = "the host has not answered";
  await gateway.gateway.stop();
  const line = gateway.logged.find((text) => text.includes('"left in use"'));
  expect(JSON.parse(line!)).toMatchObject({ "open holds": 1, "requests in flight at h": 1 });
  answering.open();
  await left;
  await closeAll(gateway, host);
});
