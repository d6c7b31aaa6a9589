import { describe, expect, test } from "bun:test";
import { SURFACE_NAMES, type SurfaceName } from "../../src/catalog/catalog.ts";
import { json, sse } from "../fakes/behaviours.ts";
import type { Behaviour } from "../fakes/host.ts";
import { COMPATIBLE_CHAT } from "../fakes/hosts/compatible-chat.ts";
import {
  chatReasoning,
  chatText,
  chatToolCall,
  type HostAnswer,
  messagesText,
  messagesThinking,
  messagesToolUse,
  responsesReasoning,
  responsesText,
  responsesToolCall,
} from "../fakes/transcripts.ts";
import { openedPerTest } from "./serving.ts";
import { heldNano, read, requestBody, type TestGatewayOptions } from "./test-gateway.ts";

/**
 * Unstreamed answers that may be long: the host is asked to stream, so that its first token shows, and the
 * client gets what the host would have answered whole.
 */
const LONG: TestGatewayOptions = { settings: { defaultMaxOutputTokens: 4_000 } };

const ANSWERS: Record<SurfaceName, readonly HostAnswer[]> = {
  "chat.completions": [chatText(), chatToolCall(), chatReasoning()],
  responses: [responsesText(), responsesToolCall(), responsesReasoning()],
  messages: [messagesText(), messagesToolUse(), messagesThinking()],
};

const { serving: serve } = openedPerTest();

const serving = (surface: SurfaceName, behaviours: readonly Behaviour[], options = LONG) =>
  serve(
    behaviours.map((behaviour) => [behaviour, { speaks: [surface] }]),
    options,
  );

/** As the client receives it. */
const billed = (whole: object, { cost_usd }: { readonly cost_usd: number }): object => ({
  ...whole,
  model: "test/model",
  usage: { ...(whole as { usage: object }).usage, cost: cost_usd },
});

/** Only whole answers contain an empty list of annotations. */
function plain(whole: HostAnswer["whole"]): object {
  const { choices } = whole as { choices?: { message: object }[] };
  const bare = choices?.map((choice) => {
    const { annotations: _, ...message } = choice.message as { annotations?: unknown };
    return { ...choice, message };
  });
  return { ...whole, ...(bare === undefined ? {} : { choices: bare }) };
}

/** Messages needs a ceiling; this one may take long. */
const longRequest = (surface: SurfaceName) => ({
  ...requestBody(surface, {}),
  ...(surface === "messages" ? { max_tokens: 4_000 } : {}),
});

describe.each([...SURFACE_NAMES])("%s: a long unstreamed answer", (surface) => {
  test.each([0, 1, 2])(
    "is collected from a stream, as the host would have given it whole (%p)",
    async (n) => {
      const { events, whole } = ANSWERS[surface][n]!;
      const { gateway, hosts } = await serving(surface, [sse(events)]);
      const answer = await gateway.send(surface, longRequest(surface));
      expect(answer.headers["content-type"]).toBe("application/json");
      expect(hosts[0]!.requests[0]!.json().stream).toBe(true);
      expect(JSON.parse(await read(answer))).toEqual(billed(plain(whole), gateway.receipt(answer)));
      expect(gateway.receipt(answer)).toMatchObject({
        state: "settled",
        stream: false,
        tokens: { source: "host" },
      });
      expect<number>(await heldNano(gateway)).toBe(0);
    },
  );

  test("is taken whole from a host that does not stream although it was asked to", async () => {
    const { whole } = ANSWERS[surface][0]!;
    const { gateway } = await serving(surface, [json(whole)]);
    const answer = await gateway.send(surface, longRequest(surface));
    expect(JSON.parse(await read(answer))).toEqual(billed(whole, gateway.receipt(answer)));
  });

  test("is decided by what the host sends, by whatever name: of a stream, or of JSON", async () => {
    const { events, whole } = ANSWERS[surface][0]!;
    for (const name of ["application/json", "text/plain", "text/event-stream"]) {
      const headers = { "content-type": name };
      const streamed = (await serving(surface, [sse(events, { headers })])).gateway;
      const collected = await streamed.send(surface, longRequest(surface));
      expect(JSON.parse(await read(collected))).toEqual(billed(plain(whole), streamed.receipt(collected)));
      const given = (await serving(surface, [json(whole, 200, headers)])).gateway;
      const answer = await given.send(surface, longRequest(surface));
      expect(JSON.parse(await read(answer))).toEqual(billed(whole, given.receipt(answer)));
    }
  });

  test("comes from the next host when the first breaks after its first token", async () => {
    const { events, whole } = ANSWERS[surface][0]!;
    const silent: Behaviour = (wire, request) =>
      sse(events, { before: (n) => (n === events.length - 3 ? request.gone : undefined) })(wire, request);
    const breaks = [sse(events.slice(0, -3), { end: "reset" }), sse(events.slice(0, -3)), silent];
    for (const broken of breaks) {
      const settings = {
        ...LONG.settings!,
        attempts: { firstTokenMs: 30_000, maxHosts: 3, hedgeMs: null, chunkGapMs: 1_000, totalMs: 60_000 },
      };
      const { gateway } = await serving(surface, [broken, sse(events)], { settings });
      const answer = await gateway.send(surface, longRequest(surface));
      expect(JSON.parse(await read(answer))).toEqual(billed(plain(whole), gateway.receipt(answer)));
      const { attempts, cost_usd, host } = gateway.receipt(answer);
      expect([attempts.length, host]).toEqual([2, "h1"]);
      expect(cost_usd).toBeGreaterThan(0);
    }
  });

  test("is asked for whole where it is short, or the host cannot stream", async () => {
    const { whole } = ANSWERS[surface][0]!;
    const short = await serving(surface, [json(whole)]);
    await read(await short.gateway.send(surface, { ...longRequest(surface), [CEILING[surface]]: 100 }));
    expect(short.hosts[0]!.requests[0]!.json().stream ?? false).toBe(false);
  });
});

test("three hosts that take half of the wait for a first token over 400 tokens are not given up one by one", async () => {
  const { events, whole } = chatText();
  const settings = {
    ...LONG.settings!,
    attempts: { firstTokenMs: 3_000, maxHosts: 3, hedgeMs: null, chunkGapMs: 10_000, totalMs: 60_000 },
  };
  const slow: Behaviour = async (wire, request) => {
    if (request.json().stream === true) {
      return sse(events, { before: (n) => (n === 2 ? Bun.sleep(1_500) : undefined) })(wire, request);
    }
    await Bun.sleep(1_500);
    return json(whole)(wire, request);
  };
  const { gateway } = await serving("chat.completions", [slow, slow, slow], { settings });
  const answer = await gateway.send("chat.completions", {
    ...longRequest("chat.completions"),
    max_tokens: 400,
  });
  expect(JSON.parse(await read(answer))).toEqual(billed(plain(whole), gateway.receipt(answer)));
  expect(gateway.receipt(answer).attempts).toMatchObject([{ host: "h0" }]);
});

const CEILING: Record<SurfaceName, string> = {
  "chat.completions": "max_tokens",
  responses: "max_output_tokens",
  messages: "max_tokens",
};

describe("a stream with an accent is put together", () => {
  test.each(Object.entries(COMPATIBLE_CHAT))("%s", async (_name, { stream, whole }) => {
    const events = stream
      .trim()
      .split("\n\n")
      .filter((text) => !text.startsWith(":"))
      .map((text) => ({ data: text.replace(/^data: /, "") }));
    const { gateway } = await serving("chat.completions", [sse(events)]);
    const { choices } = JSON.parse(
      await read(await gateway.send("chat.completions", longRequest("chat.completions"))),
    );
    const [theirs] = whole.choices as {
      message: { content: unknown; tool_calls?: { function: object }[] };
    }[];
    const textOf = (content: unknown) =>
      Array.isArray(content) ? content.flatMap(({ text = "" }) => text).join("") : (content ?? "");
    expect(textOf(choices[0].message.content)).toBe(textOf(theirs!.message.content));
    const called = (message: typeof theirs) =>
      (message?.message.tool_calls ?? []).map((call) => call.function);
    expect(called(choices[0])).toEqual(called(theirs));
  });
});

test("two choices and their probabilities stay apart", async () => {
  const chunk = (index: number, delta: object, finish: string | null = null) => ({
    data: JSON.stringify({
      id: "c",
      object: "chat.completion.chunk",
      created: 1,
      model: "m",
      future_member: { kept: true },
      choices: [
        {
          index,
          delta,
          logprobs: "content" in delta ? { content: [{ token: index, logprob: -1 }] } : null,
          finish_reason: finish,
        },
      ],
    }),
  });
  const events = [
    chunk(0, { role: "assistant", content: "A" }),
    chunk(1, { role: "assistant", content: "B" }),
    chunk(1, { content: "b" }),
    chunk(0, { content: "a" }),
    chunk(0, {}, "stop"),
    chunk(1, {}, "length"),
    { data: "[DONE]" },
  ];
  const { gateway } = await serving("chat.completions", [sse(events)]);
  const answer = JSON.parse(
    await read(await gateway.send("chat.completions", { ...longRequest("chat.completions"), n: 2 })),
  );
  expect(answer.future_member).toEqual({ kept: true });
  expect(answer.choices).toEqual([
    {
      index: 0,
      message: { role: "assistant", content: "Aa", refusal: null },
      logprobs: {
        content: [
          { token: 0, logprob: -1 },
          { token: 0, logprob: -1 },
        ],
      },
      finish_reason: "stop",
    },
    {
      index: 1,
      message: { role: "assistant", content: "Bb", refusal: null },
      logprobs: {
        content: [
          { token: 1, logprob: -1 },
          { token: 1, logprob: -1 },
        ],
      },
      finish_reason: "length",
    },
  ]);
});
