import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { json } from "../fakes/behaviours.ts";
import { closeAll } from "../fakes/close-all.ts";
import { type FakeHost, startFakeHost } from "../fakes/host.ts";
import { oneHost } from "../fakes/one-host.ts";
import { chatText } from "../fakes/transcripts.ts";
import { type OpenGateway, open } from "./open.ts";

/** An error that no retry helps reaches its user at the first try, by packages that retry by themselves. */
let host: FakeHost;
let gateway: OpenGateway;
beforeAll(async () => {
  host = await startFakeHost(() => json(chatText(["ok"], { input: 10, output: 1 }).whole));
  gateway = await open(oneHost(host.url));
});
afterAll(() => closeAll(gateway, host));

const RUN = "x-gateway-run";

/** A key whose next request, with these headers, is refused so; `waits`: `Retry-After` says when there is room. */
interface Case {
  readonly name: string;
  readonly says: string;
  readonly waits?: true;
  prepare(): Promise<Asking>;
}

interface Asking {
  readonly key: string;
  readonly headers?: Record<string, string>;
  readonly model?: string;
}

const CASES: readonly Case[] = [
  {
    name: "a wrong key",
    says: "Incorrect API key provided",
    prepare: async () => ({ key: `or-live-${"1".repeat(32)}` }),
  },
  {
    name: "a revoked key",
    says: "Incorrect API key provided",
    async prepare() {
      const made = await gateway.key(1);
      await gateway.send("DELETE", `/v1/keys/${made.id}`, { bearer: made.key });
      return made;
    },
  },
  {
    name: "a full day",
    says: "daily_limit_usd",
    waits: true,
    prepare: () => gateway.key(1, { daily_limit_usd: 0.000001 }),
  },
  {
    name: "a run without calls left",
    says: "may have 1 call",
    async prepare() {
      const { key } = await gateway.key(1);
      const headers = { [RUN]: "job; calls=1" };
      const json = { model: "test/model", messages: [{ role: "user", content: "Hello" }] };
      await gateway.send("POST", "/v1/chat/completions", { bearer: key, headers, json });
      return { key, headers };
    },
  },
  {
    name: "a run that has spent its cap",
    says: "caps spending",
    prepare: async () => ({ ...(await gateway.key(1)), headers: { [RUN]: "job; usd=0.000001" } }),
  },
  { name: "no credit", says: "credit", prepare: () => gateway.key(0) },
  {
    name: "a suspended balance",
    says: "suspended",
    async prepare() {
      const made = await gateway.key(1);
      await gateway.admin(`/admin/accounts/${made.balance_id}/suspend`, { reason: "acceptable_use" });
      return made;
    },
  },
  {
    name: "an unknown model",
    says: "test/model",
    prepare: async () => ({ ...(await gateway.key(1)), model: "test/modell" }),
  },
];

describe.each(CASES.map((one) => [one.name, one] as const))("%s", (_, { prepare, says, waits }) => {
  test.each(["openai", "anthropic"] as const)("is reported at the first try: %s", async (client) => {
    const { key, headers = {}, model = "test/model" } = await prepare();
    const answers: Response[] = [];
    const counting = async (url: string | URL | Request, init?: RequestInit) => {
      const answer = await fetch(url, init);
      answers.push(answer);
      return answer;
    };
    const messages = [{ role: "user" as const, content: "Hello" }];
    const options = { maxRetries: 5, fetch: counting, defaultHeaders: headers };
    const body =
      client === "openai"
        ? new OpenAI({ apiKey: key, baseURL: `${gateway.url}/v1`, ...options }).chat.completions.create({
            model,
            max_tokens: 100,
            messages,
          })
        : new Anthropic({ authToken: key, apiKey: null, baseURL: gateway.url, ...options }).messages.create({
            model,
            max_tokens: 100,
            messages,
          });
    expect(
      String(
        await body.then(
          () => "answered",
          (error: unknown) => error,
        ),
      ),
    ).toContain(says);
    expect(answers.map(({ headers }) => headers.get("x-should-retry"))).toEqual(["false"]);
    expect(answers[0]!.headers.has("retry-after")).toBe(waits === true);
  });
});
