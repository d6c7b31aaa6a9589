import { afterAll, describe, expect, test } from "bun:test";
import { APIError as AnthropicError } from "@anthropic-ai/sdk";
import { APIError } from "openai";
import { SURFACE_NAMES, type SurfaceName } from "../../../src/catalog/catalog.ts";
import { json } from "../../fakes/behaviours.ts";
import { SICK } from "../../fakes/hosts/sick.ts";
import type { Transcript } from "../../fakes/hosts/transcript.ts";
import { send } from "./sdk-clients.ts";
import { TestGateway } from "./test-gateway.ts";

/** A host that refuses, or breaks halfway: the official SDKs must notice, in whichever language. */
const deps = await TestGateway.open();
afterAll(() => deps.close());

const HELLO: Readonly<Record<SurfaceName, object>> = {
  "chat.completions": { messages: [{ role: "user", content: "Hi" }] },
  responses: { input: "Hi" },
  messages: { messages: [{ role: "user", content: "Hi" }], max_tokens: 500 },
};

/** The same refusal as each language's maker says it. */
const SENTENCE = "tools.0.custom.input_schema: JSON schema is invalid";
const REFUSAL: Readonly<Record<SurfaceName, object>> = {
  "chat.completions": {
    error: {
      message: SENTENCE,
      type: "invalid_request_error",
      param: "tools[0].function.parameters",
      code: null,
    },
  },
  responses: {
    error: { message: SENTENCE, type: "invalid_request_error", param: "tools[0].parameters", code: null },
  },
  messages: {
    type: "error",
    error: { type: "invalid_request_error", message: SENTENCE },
    request_id: "req_1",
  },
};

/** Hosts that break after their first token; before it, the next host answers. */
const BROKEN = SICK.filter(([, { broken, story }]) => broken !== null && story.text !== undefined);

const refusing = (client: SurfaceName, speaks: SurfaceName, stream: boolean): Promise<Error> =>
  send(client, deps, { ...HELLO[client], model: `${speaks}/model` }, stream).then(
    () => Promise.reject(new Error("the SDK saw nothing wrong")),
    (error) => error,
  );

describe.each(SURFACE_NAMES)("%s client", (client) => {
  describe.each(SURFACE_NAMES)("%s host", (speaks) => {
    test.each([false, true])("a host's refusal keeps its sentence, streamed: %p", async (stream) => {
      deps.instead = json(REFUSAL[speaks], 400);
      const error = (await refusing(client, speaks, stream)) as APIError | AnthropicError;
      deps.instead = null;
      expect(error).toBeInstanceOf(client === "messages" ? AnthropicError : APIError);
      expect(error.status).toBe(400);
      expect(error.message).toContain(SENTENCE);
    });

    test.each(BROKEN.filter(([, { host }]) => host === speaks))(
      "%s: is no answer",
      async (_name, { stream }) => {
        deps.answers = [{ stream } as Transcript];
        const body = { ...HELLO[client], model: `${speaks}/model` };
        const seen = await send(client, deps, body, true).then(
          // OpenAI's package takes a failed response for what it is: a response.
          ({ answer }) => answer.end,
          (error: Error) => error,
        );
        if (client === "responses") expect(seen).toBe("failed");
        else expect(seen).toBeInstanceOf(client === "messages" ? AnthropicError : APIError);
      },
    );
  });
});
