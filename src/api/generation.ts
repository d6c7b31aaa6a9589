import { Type } from "@sinclair/typebox";
import type { SurfaceName } from "../catalog/catalog.ts";
import { type About, endpointsWith } from "./about.ts";
import * as t from "./schema.ts";

/**
 * Requests in the clients' languages, which their authors document and `surfaces/` reads: only what every
 * request must have, or what the gateway itself acts on, is named. Other members go to the host.
 */
const model = t.string("`<author>/<name>`, `gateway/auto:<variant>` or `<author>/<name>:free`");
const stream = Type.Optional(t.boolean("stream the answer as server-sent events"));
const ceiling = Type.Optional(
  t.integer("the most output tokens; their cost is held until the answer ends", { minimum: 1 }),
);
const messages = Type.Array(Type.Object({}), { minItems: 1 });

const ChatRequest = Type.Object(
  { model, messages, stream, max_tokens: ceiling, max_completion_tokens: ceiling },
  { $id: "ChatRequest" },
);
const ResponsesRequest = Type.Object(
  {
    model,
    input: Type.Union([Type.String(), Type.Array(Type.Object({}))]),
    stream,
    max_output_tokens: ceiling,
  },
  { $id: "ResponsesRequest" },
);
const MessagesRequest = Type.Object(
  { model, messages, stream, max_tokens: Type.Integer({ minimum: 1 }) },
  { $id: "MessagesRequest" },
);

const headers = {
  "Idempotency-Key": Type.String({
    minLength: 1,
    maxLength: 255,
    description:
      "sent again by the same API key within 10 minutes with the same body, the request gets the same answer, for one charge; with another body, it is refused",
  }),
  "x-gateway-tags": t.string(
    "`customer=acme; feature=search`: up to 8 tags that the request is counted under; its receipt has them, hosts do not see them",
  ),
  "x-gateway-run": t.string(
    "`<id>[; usd=N][; calls=N]`: the run that the request belongs to, and what that may use in all",
  ),
};

const byKey = { who: ["key"], anyOrigin: true } as const;

export const GENERATION = endpointsWith(
  { ...byKey, headers, answers: { 200: ["application/json", "text/event-stream"] } },
  {
    "chat.completions": {
      summary: "Generates text through OpenAI's Chat Completions API",
      body: ChatRequest,
    },
    responses: {
      summary: "Generates text through OpenAI's Responses API",
      body: ResponsesRequest,
    },
    messages: {
      summary: "Generates text through Anthropic's Messages API",
      details: "The key may also be sent as x-api-key.",
      body: MessagesRequest,
    },
  },
) satisfies Record<SurfaceName, About>;

export const WEBSOCKET = {
  summary: "Opens OpenAI's Responses API over WebSocket",
  details:
    "Each `response.create` that is sent over it is a request like one to POST /v1/responses, which may continue the last answer by `previous_response_id`. Where a connection cannot be upgraded: 426.",
  ...byKey,
  answers: { 101: null },
} as const satisfies About;

export const COMPACTION = {
  summary: "Shortens a conversation, as OpenAI's /v1/responses/compact does",
  details:
    "Its output goes back as the input of the next request, to hosts of any language. Costs what the summary costs.",
  ...byKey,
  body: Type.Object({ model, input: Type.Union([Type.String(), Type.Array(Type.Object({}))]) }),
  answers: { 200: ["application/json"] },
} as const satisfies About;

export const COUNT_TOKENS = {
  summary: "Counts the input tokens of a request to /v1/messages, free of charge",
  details: "The key may also be sent as x-api-key. Refused for a model that the key may not call.",
  ...byKey,
  body: Type.Object({ model, messages }),
  answers: { 200: t.object({ input_tokens: t.count }) },
} as const satisfies About;
