import { afterAll, describe, expect, test } from "bun:test";
import { SURFACE_NAMES, type SurfaceName } from "../../src/catalog/catalog.ts";
import { json, sse } from "../fakes/behaviours.ts";
import { closeAll } from "../fakes/close-all.ts";
import { type Behaviour, startFakeHost } from "../fakes/host.ts";
import { chatText, eventText, type HostAnswer, messagesText, responsesText } from "../fakes/transcripts.ts";
import { open } from "./open.ts";

/**
 * Hosts that send what no ceiling can mean: tool calls without end, and text without end. The next host serves where the
 * client has seen nothing, and a stream that has started ends with an error; neither grows with what the host sends.
 */
const PATHS = {
  "chat.completions": "/v1/chat/completions",
  responses: "/v1/responses",
  messages: "/v1/messages",
} as const;

const GOOD: Readonly<Record<SurfaceName, HostAnswer>> = {
  "chat.completions": chatText(["served"]),
  responses: responsesText(["served"]),
  messages: messagesText(["served"]),
};

/** The beginning of a stream of each language, and its nth call. */
const CALLS: Readonly<Record<SurfaceName, (n: number) => object>> = {
  "chat.completions": (n) => ({
    id: "c",
    object: "chat.completion.chunk",
    created: 1,
    model: "m",
    choices: [
      {
        index: 0,
        delta: {
          tool_calls: [
            { index: n, id: `call_${n}`, type: "function", function: { name: "f", arguments: "" } },
          ],
        },
        finish_reason: null,
      },
    ],
  }),
  responses: (n) => ({
    type: "response.output_item.added",
    output_index: n,
    item: { type: "function_call", id: `fc_${n}`, call_id: `call_${n}`, name: "f", arguments: "" },
  }),
  messages: (n) => ({
    type: "content_block_start",
    index: n,
    content_block: { type: "tool_use", id: `call_${n}`, name: "f", input: {} },
  }),
};

const WHOLE: Readonly<Record<SurfaceName, object>> = {
  "chat.completions": {
    ...GOOD["chat.completions"].whole,
    choices: [
      {
        index: 0,
        finish_reason: "tool_calls",
        message: {
          role: "assistant",
          content: null,
          tool_calls: many((n) => ({
            id: `call_${n}`,
            type: "function",
            function: { name: "f", arguments: "{}" },
          })),
        },
      },
    ],
  },
  responses: {
    ...GOOD.responses.whole,
    output: many((n) => ({
      type: "function_call",
      id: `fc_${n}`,
      call_id: `call_${n}`,
      name: "f",
      arguments: "{}",
      status: "completed",
    })),
  },
  messages: {
    ...GOOD.messages.whole,
    content: many((n) => ({ type: "tool_use", id: `call_${n}`, name: "f", input: {} })),
  },
};

function many<T>(one: (n: number) => T): T[] {
  return Array.from({ length: 2_000 }, (_, n) => one(n));
}

/** Events until the gateway closes the connection, or it is clear that it does not. */
const endless =
  (first: string, mostParts: number, next: (n: number) => string): Behaviour =>
  async (wire) => {
    await wire.write("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n");
    await wire.write(first);
    let isGone = false;
    void wire.gone.then(() => {
      isGone = true;
    });
    for (let n = 0; n < mostParts && !isGone; n++) await wire.write(next(n));
    wire.close();
  };

const LONG_TEXT = "x".repeat(1_000_000);
const eventOf = (data: object): string =>
  eventText({ ...("type" in data ? { event: `${data.type}` } : {}), data: JSON.stringify(data) });

const host = await startFakeHost((request) => {
  const spoken = SURFACE_NAMES.find((name) => PATHS[name] === request.path)!;
  const { model, stream } = request.json();
  if (model === "calls" && stream !== true) return json(WHOLE[spoken]);
  const { events } = GOOD[spoken];
  const at = events.findIndex(({ data }) => data.includes("served"));
  const beginning = events
    .slice(0, at)
    .map((event) => eventText(event))
    .join("");
  if (model === "calls") {
    // Two hundred at a time.
    const next = (n: number) =>
      Array.from({ length: 200 }, (_, more) => eventOf(CALLS[spoken](n * 200 + more))).join("");
    return endless(beginning, 100, next);
  }
  if (model === "text") {
    const long = eventText({ ...events[at]!, data: events[at]!.data.replace("served", LONG_TEXT) });
    return endless(beginning, 60, () => long);
  }
  return stream === true ? sse(events) : json(GOOD[spoken].whole);
});
/** A host of its own for each case: one that failed rests, and would not be asked. */
const FLOODS = { streamed: "calls", whole: "calls", assembled: "calls", text: "text" } as const;
type Flood = keyof typeof FLOODS;
const CASES = SURFACE_NAMES.flatMap((spoken) =>
  SURFACE_NAMES.flatMap((client) =>
    (Object.keys(FLOODS) as Flood[]).map((flood) => ({ spoken, flood, id: `${spoken}-${client}-${flood}` })),
  ),
);
const gateway = await open(`
hosts:
${SURFACE_NAMES.map((spoken) => `  - { id: ${spoken}-good, base_url: "${host.url}/v1", speaks: [${spoken}] }`).join("\n")}
${CASES.map(({ spoken, id }) => `  - { id: ${id}, base_url: "${host.url}/v1", speaks: [${spoken}] }`).join("\n")}
models:${CASES.map(
  ({ spoken, flood, id }) => `
  - id: test/${id}
    context_length: 10000
    max_output_tokens: 1000
    price: { input: 1, output: 2 }
    routes: [{ host: ${id}, model: ${FLOODS[flood]} }, { host: ${spoken}-good, model: good }]`,
).join("")}
`);
const { key } = await gateway.key(100, {
  rpm_limit: null,
  tpm_limit: null,
  daily_limit_usd: null,
  monthly_limit_usd: null,
});
afterAll(() => closeAll(gateway, host));

const tool = { name: "f", description: "d" };
const schema = { type: "object", properties: {} };
const BODIES: Readonly<Record<SurfaceName, object>> = {
  "chat.completions": {
    messages: [{ role: "user", content: "Hi" }],
    tools: [{ type: "function", function: { ...tool, parameters: schema } }],
  },
  responses: { input: "Hi", tools: [{ type: "function", ...tool, parameters: schema }] },
  messages: {
    messages: [{ role: "user", content: "Hi" }],
    tools: [{ ...tool, input_schema: schema }],
  },
};
const CEILINGS = {
  "chat.completions": "max_tokens",
  responses: "max_output_tokens",
  messages: "max_tokens",
} as const;

interface FloodCase {
  readonly client: SurfaceName;
  readonly spoken: SurfaceName;
  readonly flood: Flood;
  readonly stream: boolean;
  readonly ceiling: number;
}

async function send({ client, spoken, flood, stream, ceiling }: FloodCase) {
  const model = `test/${spoken}-${client}-${flood}`;
  const body = { ...BODIES[client], model, stream, [CEILINGS[client]]: ceiling };
  const response = await fetch(`${gateway.url}${PATHS[client]}`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  return { status: response.status, text: await response.text() };
}

describe.each(SURFACE_NAMES)("a host of %s", (spoken) => {
  describe.each(SURFACE_NAMES)("for a client of %s", (client) => {
    test("that streams calls without end is cut off after 1,024 of them", async () => {
      const { status, text } = await send({ client, spoken, flood: "streamed", stream: true, ceiling: 16 });
      expect(status).toBe(200);
      expect(text).toContain("upstream_error");
      expect(text.split(/call_\d+/).length).toBeLessThan(10_000);
    });

    test.each([
      ["whole", 16],
      ["assembled", 1_000],
    ] as const)("that answers with 2,000 calls, %s, is passed over for the next", async (flood, ceiling) => {
      const { status, text } = await send({ client, spoken, flood, stream: false, ceiling });
      expect([status, text.includes("served"), text.includes("call_")]).toEqual([200, true, false]);
    });
  });

  test("that streams text far beyond its ceiling is cut off", async () => {
    const { status, text } = await send({
      client: spoken,
      spoken,
      flood: "text",
      stream: true,
      ceiling: 16,
    });
    expect(status).toBe(200);
    expect(text).toContain("upstream_error");
    expect(text.length).toBeLessThan(20_000_000);
  });
});
