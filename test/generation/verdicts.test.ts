import { expect, test } from "bun:test";
import { SURFACE_NAMES, type SurfaceName } from "../../src/catalog/catalog.ts";
import { json, sse } from "../fakes/behaviours.ts";
import type { Behaviour } from "../fakes/host.ts";
import { chatText } from "../fakes/transcripts.ts";
import { openedPerTest } from "./serving.ts";
import { read, requestBody } from "./test-gateway.ts";

/**
 * Hosts also say what is wrong with a request after their 200. Another host may still serve it; but a client
 * that gets an error about failing hosts, where all of them said so, repeats what cannot succeed.
 */
const { serving } = openedPerTest();

const event = (data: { type: string; [member: string]: unknown }) => ({
  event: data.type,
  data: JSON.stringify(data),
});
const CREATED = event({
  type: "response.created",
  sequence_number: 0,
  response: { id: "resp_1", output: [] },
});
const failed = (code: string, message: string) =>
  sse([
    CREATED,
    event({
      type: "response.failed",
      response: { id: "resp_1", status: "failed", error: { code, message } },
    }),
  ]);
const anthropic = (type: string, message: string) =>
  sse([event({ type: "error", error: { type, message } })]);
const chunk = (error: object) => sse([{ data: JSON.stringify({ error }) }]);

const FLAGGED = "Invalid prompt: your prompt was flagged as potentially violating our usage policy.";
const BLOCKED = "Output blocked by content filtering policy";
const BROKEN = "The image data you provided does not represent a valid image.";
const VERDICTS: [string, SurfaceName, Behaviour, string][] = [
  ["OpenAI, of a prompt", "responses", failed("invalid_prompt", FLAGGED), FLAGGED],
  ["OpenAI, of an image", "responses", failed("invalid_image", BROKEN), BROKEN],
  [
    "OpenAI, by an error event",
    "responses",
    sse([
      event({
        type: "error",
        error: { type: "invalid_request_error", code: null, message: FLAGGED },
      }),
    ]),
    FLAGGED,
  ],
  ["Anthropic", "messages", anthropic("invalid_request_error", BLOCKED), BLOCKED],
  ["vLLM", "chat.completions", chunk({ message: BROKEN, type: "BadRequestError", code: 400 }), BROKEN],
  [
    "an error with 200",
    "chat.completions",
    json({ error: { message: BROKEN, type: "invalid_request_error" } }),
    BROKEN,
  ],
  [
    "OpenRouter, of its provider",
    "chat.completions",
    chunk({ message: "Provider returned error", code: 400, metadata: { raw: BROKEN } }),
    BROKEN,
  ],
];

const OTHERS: [string, SurfaceName, Behaviour][] = [
  ["OpenAI, of itself", "responses", failed("server_error", "Sorry about that.")],
  ["OpenAI, of its rate", "responses", failed("rate_limit_exceeded", "Please try again in 2 s.")],
  ["Anthropic, overloaded", "messages", anthropic("overloaded_error", "Overloaded")],
  [
    "Anthropic, out of credit",
    "messages",
    anthropic("invalid_request_error", "Your credit balance is too low to access the Anthropic API."),
  ],
  [
    "of a model that is gone",
    "chat.completions",
    chunk({ message: "Gone.", type: "invalid_request_error", code: "model_not_found" }),
  ],
  [
    "a rate, as a number",
    "chat.completions",
    chunk({ message: "Slower.", type: "invalid_request_error", code: 429 }),
  ],
];

interface Behaving {
  readonly spoken: SurfaceName;
  readonly says: Behaviour;
}
const SERVING: Behaving = { spoken: "chat.completions", says: sse(chatText().events) };

/** By the first of these hosts that can. */
async function answered(client: SurfaceName, stream: boolean, behaving: readonly Behaving[]) {
  const { gateway } = await serving(behaving.map(({ spoken, says }) => [says, { speaks: [spoken] }]));
  // So long that the host is asked to stream it, either way.
  const ceiling = { [client === "responses" ? "max_output_tokens" : "max_tokens"]: 2_000 };
  const answer = await gateway.send(client, requestBody(client, { stream, ...ceiling }));
  const text = await read(answer);
  return { status: answer.status, text, attempts: gateway.receipt(answer).attempts };
}

for (const client of SURFACE_NAMES)
  for (const stream of [true, false]) {
    const how = `${client}, ${stream ? "streamed" : "whole"}`;
    test.each(VERDICTS)(
      `${how}: a verdict on the request of every host is returned: %s`,
      async (_what, spoken, says, sentence) => {
        const two = [
          { spoken, says },
          { spoken, says },
        ];
        const { status, text, attempts } = await answered(client, stream, two);
        const { code, message } = JSON.parse(text).error;
        expect([status, code]).toEqual([400, "invalid_request"]);
        expect(message).toContain(sentence);
        expect(attempts).toMatchObject([
          { host: "h0", outcome: "rejected" },
          { host: "h1", outcome: "rejected" },
        ]);
      },
    );

    test.each(VERDICTS)(
      `${how}: after a verdict of one host another may serve: %s`,
      async (_what, spoken, says) => {
        const { status, attempts } = await answered(client, stream, [{ spoken, says }, SERVING]);
        expect(status).toBe(200);
        expect(attempts).toMatchObject([{ host: "h0", outcome: "rejected" }, { host: "h1" }]);
      },
    );

    test.each(OTHERS)(
      `${how}: what says nothing about the request is another host's turn: %s`,
      async (_what, spoken, says) => {
        const { status, attempts } = await answered(client, stream, [{ spoken, says }, SERVING]);
        expect(status).toBe(200);
        expect(attempts).toMatchObject([{ host: "h0", outcome: "refused" }, { host: "h1" }]);
      },
    );
  }
