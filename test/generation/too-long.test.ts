import { expect, test } from "bun:test";
import { SURFACE_NAMES, type SurfaceName } from "../../src/catalog/catalog.ts";
import { json, sse } from "../fakes/behaviours.ts";
import type { Behaviour } from "../fakes/host.ts";
import { chatText } from "../fakes/transcripts.ts";
import { openedPerTest } from "./serving.ts";
import { read, requestBody } from "./test-gateway.ts";

/**
 * OpenAI finds prompts too long only once it streams: its context is larger than the prompts that it takes.
 * Codex shortens its conversation by this error, and repeats itself for as long as errors say that hosts fail.
 */
const { serving } = openedPerTest();

const ERROR = {
  code: "context_length_exceeded",
  message: "Your input exceeds the context window of this model. Please adjust your input and try again.",
};
const CREATED = { type: "response.created", sequence_number: 0, response: { id: "resp_1", output: [] } };
const event = (data: object & { type: string }) => ({ event: data.type, data: JSON.stringify(data) });
const FAILED = { type: "response.failed", response: { id: "resp_1", status: "failed", error: ERROR } };
const SAYS: [string, SurfaceName, Behaviour][] = [
  ["response.failed", "responses", sse([event(CREATED), event(FAILED)])],
  ["an error event", "responses", sse([event(CREATED), event({ type: "error", ...ERROR })])],
  ["an error chunk", "chat.completions", sse([{ data: JSON.stringify({ error: ERROR }) }])],
  ["an error with 200", "chat.completions", json({ error: ERROR })],
];

const TOO_LONG: [string, string, RegExp][] = [
  [
    "the host's count and bound",
    "prompt is too long: 209321 tokens > 200000 maximum",
    /: 209321 tokens > 200000 maximum by its host's count; .*maximum context length is 200000 tokens/,
  ],
  [
    "the host's bound",
    "This model's maximum context length is 4 tokens",
    /it has about \d+ tokens, and this model's maximum context length is 4 tokens\./,
  ],
  [
    "neither, where the gateway's estimate would fit",
    "Your input exceeds the context window of this model.",
    /its host counts more than the gateway, which estimates about \d+ tokens, and .* is \d{4,} tokens\./,
  ],
];
test.each(TOO_LONG)("the refusal says %s", async (_what, message, says) => {
  const { gateway } = await serving([[json({ error: { message } }, 400)]]);
  const { error } = JSON.parse(
    await read(await gateway.send("chat.completions", requestBody("chat.completions"))),
  );
  expect(error.code).toBe("context_too_long");
  expect(error.message).toMatch(says);
});

for (const client of SURFACE_NAMES)
  for (const stream of [true, false])
    test.each(SAYS)(`${client}, ${stream ? "streamed" : "whole"}: %s`, async (_what, spoken, says) => {
      const speaks = [spoken];
      const { gateway, hosts } = await serving([
        [says, { speaks }],
        [json(chatText().whole), { speaks }],
      ]);
      // So long that the host is asked to stream it, either way.
      const ceiling = { [client === "responses" ? "max_output_tokens" : "max_tokens"]: 2_000 };
      const answer = await gateway.send(client, requestBody(client, { stream, ...ceiling }));
      expect([answer.status, JSON.parse(await read(answer)).error.code]).toEqual([400, "context_too_long"]);
      expect(gateway.receipt(answer).attempts).toMatchObject([{ host: "h0", outcome: "rejected" }]);
      expect(hosts[1]!.requests).toHaveLength(0);
    });
