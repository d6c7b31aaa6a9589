import { describe, expect, test } from "bun:test";
import { SURFACE_NAMES, type SurfaceName } from "../../src/catalog/catalog.ts";
import type { GenerationRequest, StreamJudge } from "../../src/surfaces/surface.ts";
import { pairing, SURFACES } from "../../src/surfaces/surfaces.ts";
import { ANTHROPIC_MESSAGES } from "../fakes/hosts/anthropic-messages.ts";
import { COMPATIBLE_CHAT } from "../fakes/hosts/compatible-chat.ts";
import { OPENAI_CHAT } from "../fakes/hosts/openai-chat.ts";
import { OPENAI_RESPONSES } from "../fakes/hosts/openai-responses.ts";
import type { Transcript } from "../fakes/hosts/transcript.ts";
import { brokenRules, wrongEvents } from "./event-order.ts";
import { tellable, toldByStream, toldByWhole } from "./told.ts";
import { violations } from "./wire-schema.ts";

/** Every answer of every host, told to clients of all three languages. */
const OFFICIAL: readonly (readonly [string, Transcript])[] = [
  ...named("OpenAI chat", OPENAI_CHAT),
  ...named("OpenAI responses", OPENAI_RESPONSES),
  ...named("Anthropic", ANTHROPIC_MESSAGES),
];
const ACCENTED = named("chat", COMPATIBLE_CHAT);

const WHOLE = { "chat.completions": "chatCompletion", responses: "response", messages: "message" } as const;
const ASKED = { publicModel: "test/model", atS: 1_763_000_000 };

for (const [name, transcript] of [...OFFICIAL, ...ACCENTED]) {
  const { host, stream, whole, story } = transcript;
  const official = OFFICIAL.some(([, one]) => one === transcript);
  const bytes = encode(stream);

  describe(name, () => {
    for (const client of SURFACE_NAMES) {
      const speaksOfCustomTools = client !== "messages";
      if (!speaksOfCustomTools && story.calls?.some(({ custom }) => custom)) continue;
      const by = client === host ? "host" : "gateway";
      const open = () => pairing(client, host).openStream(request(client, true), ASKED);
      // What a host says with an accent reaches a client of its own language as it is.
      const heldToRules = official || client !== host;
      const told = {
        ...tellable(client, story),
        ...(client === host && story.said ? { end: story.said } : {}),
      };

      test(`${client} client, streamed`, () => {
        const { text, usage } = run(open(), [bytes]);
        expect(usage).toMatchObject(story.usage!);
        if (!heldToRules) return;
        expect(brokenRules(client, text, { usage: true })).toEqual([]);
        expect(wrongEvents(client, text, by)).toEqual([]);
        expect(toldByStream(client, text)).toEqual(told);
      });

      test(`${client} client, unstreamed`, () => {
        const reply = pairing(client, host).readReply(
          encode(JSON.stringify(whole)),
          request(client, false),
          ASKED,
        );
        if (reply.kind === "fault") throw new Error(reply.message);
        expect(reply.usage).toMatchObject(story.usage!);
        if (!heldToRules) return;
        const body = JSON.parse(decode(reply.body));
        expect(violations(WHOLE[client], body, by)).toEqual([]);
        expect(toldByWhole(client, body)).toEqual(told);
      });

      test(`${client} client: cut anywhere, the stream is the same`, () => {
        const { text } = run(open(), [bytes]);
        for (const size of [1, 2, 3, 7, 61, 500]) expect(run(open(), inPieces(bytes, size)).text).toBe(text);
        const crlf = encode(stream.replaceAll("\n", "\r\n"));
        if (client !== host) expect(run(open(), inPieces(crlf, 1)).text).toBe(text);
      });
    }
  });
}

function named(maker: string, transcripts: Readonly<Record<string, Transcript>>) {
  return Object.entries(transcripts).map(([name, one]) => [`${maker}: ${name}`, one] as const);
}

/** A request that leaves a host free to answer as any of them does. */
function request(surface: SurfaceName, stream: boolean): GenerationRequest {
  const messages = [{ role: "user", content: "Hi" }];
  const more = {
    "chat.completions": {
      messages,
      tools: [{ type: "custom", custom: { name: "apply_patch" } }],
      ...(stream ? { stream_options: { include_usage: true } } : {}),
    },
    responses: {
      input: "Hi",
      include: ["reasoning.encrypted_content"],
      tools: [{ type: "custom", name: "apply_patch" }],
    },
    messages: { messages, max_tokens: 9 },
  }[surface];
  const body = { model: "test/model", stream, ...more };
  return SURFACES[surface].readRequest(encode(JSON.stringify(body))) as GenerationRequest;
}

function run(judge: StreamJudge, chunks: Iterable<Uint8Array>) {
  const given: Uint8Array[] = [];
  for (const chunk of chunks) given.push(judge.push(chunk).slice());
  given.push(judge.end());
  expect(judge.fault).toBeNull();
  return { text: decode(Buffer.concat([...given, judge.terminal!])), usage: judge.usage };
}

function inPieces(bytes: Uint8Array, size: number): Uint8Array[] {
  return Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) =>
    bytes.slice(at * size, (at + 1) * size),
  );
}

function encode(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

function decode(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes);
}
