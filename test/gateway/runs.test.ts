import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { json } from "../fakes/behaviours.ts";
import { closeAll } from "../fakes/close-all.ts";
import { type FakeHost, startFakeHost } from "../fakes/host.ts";
import { oneHost } from "../fakes/one-host.ts";
import { chatText } from "../fakes/transcripts.ts";
import { Folder } from "../process/gateway.ts";
import { type OpenGateway, open, openIn } from "./open.ts";
import { testRuns } from "./runs.ts";

describe("at one gateway on SQLite", () => {
  testRuns(1, async () => "");
});

describe("how a run is named", () => {
  let host: FakeHost;
  let gateway: OpenGateway;
  let sent: Record<string, unknown>[] = [];
  beforeAll(async () => {
    host = await startFakeHost((request) => {
      sent.push(request.json());
      return json(chatText(["ok"], { input: 10, output: 1 }).whole);
    });
    gateway = await open(oneHost(host.url));
  });
  afterAll(() => closeAll(gateway, host));

  test.each([
    [""],
    ["with space"],
    ["a/b"],
    ["x".repeat(65)],
    ["job; cals=4"],
    ["job; calls=0"],
    ["job; calls=1.5"],
    ["job; calls=-1"],
    ["job; usd=0"],
    ["job; usd=1e3"],
    ["job; usd=-1"],
    ["job; usd=0.0000000001"],
    ["job; usd=1; usd=2"],
    ["job; usd"],
    ["job; usd=1=2"],
    ["job;"],
  ])("`%s` is refused, and nothing is sent", async (run) => {
    const { key } = await gateway.key(1);
    sent = [];
    const { status, json } = await gateway.send("POST", "/v1/chat/completions", {
      bearer: key,
      json: { model: "test/model", messages: [{ role: "user", content: "Hello" }], metadata: { [RUN]: run } },
    });
    expect([status, json.error.code, json.error.param]).toEqual([400, "invalid_request", RUN]);
    expect(sent).toEqual([]);
  });

  const BODIES: Record<string, object> = {
    "/v1/chat/completions": { messages: [{ role: "user", content: "Hello" }] },
    "/v1/responses": { input: "Hello" },
    "/v1/messages": { messages: [{ role: "user", content: "Hello" }], max_tokens: 50 },
  };

  test.each(Object.entries(BODIES))(
    "in the metadata of %s, which the host does not see",
    async (path, body) => {
      const { key } = await gateway.key(1);
      sent = [];
      const chat = (metadata: object) =>
        gateway.send("POST", path, {
          bearer: key,
          json: { model: "test/model", ...body, metadata },
        });
      expect((await chat({ [RUN]: "job; calls=2", user_id: "u1" })).status).toBe(200);
      expect((await chat({ [RUN]: "job" })).status).toBe(200);
      expect((await chat({ [RUN]: "job" })).status).toBe(429);
      expect(sent).toHaveLength(2);
      for (const one of sent) expect(JSON.stringify(one)).not.toContain(RUN);
    },
  );

  test.each([
    ["job", "job", 200],
    ["job; calls=2; usd=1", "job; usd=1.0; calls=2", 200],
    ["job", "other", 400],
    ["job; calls=2", "job", 400],
    ["", "job", 400],
    ["job", "", 400],
    ["a b", "job", 400],
    ["", undefined, 400],
    ["a b", undefined, 400],
    ["job, job", undefined, 400],
  ])("in the header as `%s` and in the metadata as `%s`: %d", async (header, member, status) => {
    const { key } = await gateway.key(1);
    const reply = await gateway.send("POST", "/v1/chat/completions", {
      bearer: key,
      headers: { [RUN]: header },
      json: {
        model: "test/model",
        messages: [{ role: "user", content: "Hello" }],
        ...(member === undefined ? {} : { metadata: { [RUN]: member } }),
      },
    });
    expect([reply.status, reply.json.error?.param]).toEqual([status, status === 200 ? undefined : RUN]);
    if (status === 200) expect((await gateway.receipt(reply, key)).json.run).toBe("job");
  });

  test.each([
    ["job", "job", 200],
    ["job; calls=2", "job", 200],
    ["job", "other", 400],
    [undefined, "other", 200],
  ])("in the header as `%s` next to a label `run` of `%s`: %d", async (header, label, status) => {
    const { key } = await gateway.key(1);
    const reply = await gateway.send("POST", "/v1/chat/completions", {
      bearer: key,
      headers: header === undefined ? {} : { [RUN]: header },
      json: {
        model: "test/model",
        messages: [{ role: "user", content: "Hello" }],
        metadata: { run: label },
      },
    });
    expect([reply.status, reply.json.error?.param]).toEqual([status, status === 200 ? undefined : RUN]);
  });

  test("who has no credit has few runs", async () => {
    const { key } = await gateway.key(0);
    const statuses: number[] = [];
    for (let run = 0; run < 21; run++) {
      const { status } = await gateway.send("POST", "/v1/chat/completions", {
        bearer: key,
        headers: { [RUN]: `run-${run}` },
        json: { model: "test/model", messages: [{ role: "user", content: "Hello" }] },
      });
      statuses.push(status);
    }
    expect(statuses).toEqual([...Array(20).fill(402), 429]);
  });
});

test("a restart keeps a run's limits, and what was used of them", async () => {
  const folder = new Folder("");
  let gateway = await openIn(folder);
  const { key } = await gateway.key(1);
  const call = async () =>
    (
      await gateway.send("POST", "/v1/chat/completions", {
        bearer: key,
        headers: { [RUN]: "job" },
        json: { model: "sim/echo", messages: [{ role: "user", content: "Hello" }] },
      })
    ).status;
  await gateway.send("POST", "/v1/chat/completions", {
    bearer: key,
    headers: { [RUN]: "job; calls=2" },
    json: { model: "sim/echo", messages: [{ role: "user", content: "Hello" }] },
  });
  await gateway.gateway.stop();
  gateway = await openIn(folder);
  expect([await call(), await call()]).toEqual([200, 429]);
  await gateway.close();
});

const RUN = "x-gateway-run";
