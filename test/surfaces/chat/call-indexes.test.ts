import { describe, expect, test } from "bun:test";
import { pairing } from "../../../src/surfaces/surfaces.ts";
import { bodyOf, encode, given, inPieces, METADATA, openRequest } from "../harness.ts";

const chunk = (delta: object, finish_reason: string | null = null, index = 0) => ({
  id: "c1",
  object: "chat.completion.chunk",
  created: 1,
  model: "gemini-3-flash",
  choices: [{ index, delta, finish_reason }],
});
const call = (id: string | undefined, args: string, more: object = {}) => ({
  ...(id === undefined ? {} : { id, type: "function" }),
  function: { ...(id === undefined ? {} : { name: `tool_${id}` }), arguments: args },
  ...more,
});
const sse = (chunks: readonly object[]) =>
  encode(`${chunks.map((one) => `data: ${JSON.stringify(one)}\n\n`).join("")}data: [DONE]\n\n`);
/** So many calls in one event: looking for each among all of them would take minutes. */
const MANY = 1_024;
const signed = { extra_content: { google: { thought_signature: "c2lnbmVk" } } };

/** What a client's accumulator needs: each piece of a call with its index, and why the choice ended. */
function seen(text: string) {
  const chunks = [...text.matchAll(/^data: (\{.*)$/gm)].map(([, json]) => JSON.parse(json!));
  const choices = chunks.flatMap(({ choices }) => choices);
  return {
    calls: choices.flatMap(({ delta }) =>
      (delta.tool_calls ?? []).map((piece: { index: number; function: { arguments: string } }) => [
        piece.index,
        piece.function.arguments,
      ]),
    ),
    ends: choices.map(({ finish_reason }) => finish_reason).filter((reason) => reason !== null),
    models: [...new Set(chunks.map(({ model }) => model))],
  };
}

const CASES: [string, object[], [number, string][], string][] = [
  [
    "calls in one chunk",
    [chunk({ tool_calls: [call("a", '{"x":1}', signed), call("b", '{"y":2}')] }), chunk({}, "stop")],
    [
      [0, '{"x":1}'],
      [1, '{"y":2}'],
    ],
    "tool_calls",
  ],
  [
    "calls in chunks of their own, the last with the end",
    [chunk({ tool_calls: [call("a", "{}")] }), chunk({ tool_calls: [call("b", "{}")] }, "stop")],
    [
      [0, "{}"],
      [1, "{}"],
    ],
    "tool_calls",
  ],
  [
    "a call in pieces, with its id, without one and with an empty one",
    [
      chunk({ tool_calls: [call("a", '{"x"')] }),
      chunk({ tool_calls: [call("a", ":")] }),
      chunk({ tool_calls: [call(undefined, "1")] }),
      chunk({ tool_calls: [{ id: "", function: { arguments: "}" } }] }),
      chunk({}, "tool_calls"),
    ],
    [
      [0, '{"x"'],
      [0, ":"],
      [0, "1"],
      [0, "}"],
    ],
    "tool_calls",
  ],
  [
    "a call without any id",
    [chunk({ tool_calls: [call(undefined, "{}")] }), chunk({}, "stop")],
    [[0, "{}"]],
    "tool_calls",
  ],
  [
    "calls that have their index, of an author's own host, whose `stop` may be meant",
    [chunk({ tool_calls: [call("a", "{}", { index: 0 })] }), chunk({}, "stop")],
    [[0, "{}"]],
    "stop",
  ],
];

describe("calls that a chat host streams without an index", () => {
  const pair = pairing("chat.completions", "chat.completions");

  test.each(CASES)("%s", (_, chunks, calls, end) => {
    const bytes = sse([chunk({ role: "assistant", content: "I look." }), ...chunks]);
    for (const size of [bytes.length, 1, 7]) {
      const judge = pair.openStream(openRequest("chat.completions", true), METADATA);
      const text = given(judge, inPieces(bytes, size));
      expect(seen(text)).toEqual({ calls, ends: [end], models: [METADATA.publicModel] });
    }
    const judge = pair.openWhole(openRequest("chat.completions", false), METADATA);
    judge.push(bytes);
    const reply = judge.reply();
    const [choice] = JSON.parse(bodyOf(reply)).choices;
    expect(choice.finish_reason).toBe(end);
    expect(choice.message.tool_calls).toHaveLength(new Set(calls.map(([index]) => index)).size);
  });

  test("keep what else the host says of them", () => {
    const judge = pair.openStream(openRequest("chat.completions", true), METADATA);
    const text = given(judge, [sse([chunk({ tool_calls: [call("a", "{}", signed)] }), chunk({}, "stop")])]);
    expect(text).toContain("c2lnbmVk");
  });

  test("each choice has its own", () => {
    const judge = pair.openStream(openRequest("chat.completions", true), METADATA);
    const chunks = [0, 1].map((index) => chunk({ tool_calls: [call(`a${index}`, "{}")] }, "stop", index));
    expect(seen(given(judge, [sse(chunks)]))).toMatchObject({
      calls: [
        [0, "{}"],
        [0, "{}"],
      ],
      ends: ["tool_calls", "tool_calls"],
    });
  });

  test("are found again however many they are", () => {
    const indexed = (name: string) => Array.from({ length: MANY }, (_, at) => ({ [name]: at }));
    for (const calls of [indexed("id"), indexed("index")]) {
      const bytes = sse([chunk({ tool_calls: calls }), chunk({ tool_calls: calls }, "stop")]);
      const stream = pair.openStream(openRequest("chat.completions", true), METADATA);
      const text = given(stream, [bytes]);
      expect(text).toContain(`"index":${MANY - 1}`);
      expect(text).not.toContain(`"index":${MANY}`);
      const whole = pair.openWhole(openRequest("chat.completions", false), METADATA);
      whole.push(bytes);
      const reply = whole.reply();
      expect(JSON.parse(bodyOf(reply)).choices[0].message.tool_calls).toHaveLength(MANY);
    }
  });
});

test("calls that a chat host all streams at index 0 are kept apart in a stream that is passed on, cut anywhere", () => {
  const at0 = (id: string | undefined, args: string) => call(id, args, { index: 0 });
  const pieces = [
    ...[at0("a", ""), at0(undefined, '{"x"'), at0(undefined, ":"), at0(undefined, "1}")],
    ...[at0("b", ""), at0(undefined, '{"y"'), at0(undefined, ":"), at0(undefined, "2}")],
  ];
  const chunks = [chunk({ role: "assistant", content: "I look." }), chunk({ content: " And look." })];
  const bytes = sse([
    ...chunks,
    ...pieces.map((piece) => chunk({ tool_calls: [piece] })),
    chunk({}, "tool_calls"),
  ]);
  for (const size of [bytes.length, 1, 300]) {
    const judge = pairing("chat.completions", "chat.completions").openStream(
      openRequest("chat.completions", true),
      METADATA,
    );
    const { calls } = seen(given(judge, inPieces(bytes, size)));
    expect(calls.map(([index]) => index)).toEqual([0, 0, 0, 0, 1, 1, 1, 1]);
    expect(calls.map(([, args]) => args).join("")).toBe('{"x":1}{"y":2}');
  }
});

/** Ollama, vLLM, SGLang and Poolside have been seen to. */
describe("calls that a chat host all streams at index 0, in an answer that is collected", () => {
  const at0 = (id: string | undefined, args: string) => call(id, args, { index: 0 });
  const more = (id: string, args: string) => ({ index: 0, id, function: { arguments: args } });
  const both = [
    ["a", '{"x":1}'],
    ["b", '{"y":2}'],
  ];

  test.each<[string, object[][], string[][]]>([
    ["in one chunk", [[at0("a", '{"x":1}'), at0("b", '{"y":2}')]], both],
    ["in chunks of their own", [[at0("a", '{"x":1}')], [at0("b", '{"y":2}')]], both],
    [
      "in pieces without an id",
      [[at0("a", "")], [at0(undefined, '{"x":1}')], [at0("b", "")], [at0(undefined, '{"y":2}')]],
      both,
    ],
    [
      "in turns, each piece with its id",
      [
        [at0("a", '{"x"'), at0("b", '{"y"')],
        [more("a", ":1}"), more("b", ":2}")],
      ],
      both,
    ],
    [
      "and the next at index 1",
      [
        [at0("a", '{"x":1}'), at0("b", '{"y":2}')],
        [call("c", '{"z"', { index: 1 })],
        [call(undefined, ":3}", { index: 1 })],
      ],
      [...both, ["c", '{"z":3}']],
    ],
    ["or only one, whose pieces have ids of their own", [[at0("a", '{"x"')], [more("b", ":1}")]], [both[0]!]],
  ])("%s", (_, chunks, calls) => {
    const judge = pairing("chat.completions", "chat.completions").openWhole(
      openRequest("chat.completions", false),
      METADATA,
    );
    judge.push(sse([...chunks.map((tool_calls) => chunk({ tool_calls })), chunk({}, "tool_calls")]));
    const reply = judge.reply();
    const { tool_calls } = JSON.parse(bodyOf(reply)).choices[0].message;
    type Call = { id: string; function: { name: string; arguments: string } };
    expect(tool_calls.map(({ id, function: called }: Call) => [id, called.arguments])).toEqual(calls);
    expect(tool_calls.map((one: Call) => one.function.name)).toEqual(calls.map(([id]) => `tool_${id}`));
  });
});
