import { describe, expect, test } from "bun:test";
import { SURFACE_NAMES, type SurfaceName } from "../../src/catalog/catalog.ts";
import type { GenerationRequest, StreamJudge } from "../../src/surfaces/surface.ts";
import { pairing, SURFACES } from "../../src/surfaces/surfaces.ts";
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
  sseText,
} from "../fakes/transcripts.ts";
import { brokenRules, wrongEvents } from "./event-order.ts";
import { violations } from "./wire-schema.ts";

/** Every answer of every host, told to clients of all three languages. */
const ANSWERS: Readonly<Record<SurfaceName, Readonly<Record<string, HostAnswer>>>> = {
  "chat.completions": { text: chatText(), tools: chatToolCall(), reasoning: chatReasoning() },
  responses: { text: responsesText(), tools: responsesToolCall(), reasoning: responsesReasoning() },
  messages: { text: messagesText(), tools: messagesToolUse(), reasoning: messagesThinking() },
};
const WHOLE = { "chat.completions": "chatCompletion", responses: "response", messages: "message" } as const;

const ASKED = { publicModel: "test/model", atS: 1_763_000_000 };
const encode = (text: string): Uint8Array => new TextEncoder().encode(text);
const decode = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);

function request(surface: SurfaceName, stream: boolean): GenerationRequest {
  const said = surface === "responses" ? { input: "Hi" } : { messages: [{ role: "user", content: "Hi" }] };
  const more = {
    "chat.completions": { stream_options: { include_usage: true } },
    responses: { include: ["reasoning.encrypted_content"] },
    messages: { max_tokens: 9 },
  }[surface];
  const body = {
    model: "test/model",
    stream,
    ...said,
    ...(stream || surface !== "chat.completions" ? more : {}),
  };
  return SURFACES[surface].readRequest(encode(JSON.stringify(body))) as GenerationRequest;
}

function run(judge: StreamJudge, chunks: Iterable<Uint8Array>): string {
  const given: Uint8Array[] = [];
  for (const chunk of chunks) given.push(judge.push(chunk).slice());
  given.push(judge.end());
  expect(judge.fault).toBeNull();
  return decode(Buffer.concat([...given, judge.terminal!]));
}

for (const client of SURFACE_NAMES) {
  for (const host of SURFACE_NAMES) {
    describe(`${client} client, ${host} host`, () => {
      const writer = client === host ? "host" : "gateway";
      const open = () => pairing(client, host).openStream(request(client, true), ASKED);

      for (const [name, { events, whole }] of Object.entries(ANSWERS[host])) {
        const bytes = encode(sseText(events));

        test(`${name}: the stream is well ordered, and every event is of a published type`, () => {
          const text = run(open(), [bytes]);
          expect(brokenRules(client, text, { usage: true })).toEqual([]);
          expect(wrongEvents(client, text, writer)).toEqual([]);
        });

        test(`${name}: cut at every byte, the client gets the same`, () => {
          const text = run(open(), [bytes]);
          for (let at = 0; at <= bytes.length; at++)
            expect(run(open(), [bytes.slice(0, at), bytes.slice(at)])).toBe(text);
        });

        test(`${name}: the whole answer is of a published type`, () => {
          const reply = pairing(client, host).readReply(
            encode(JSON.stringify(whole)),
            request(client, false),
            ASKED,
          );
          if (reply.kind === "fault") throw new Error(reply.message);
          expect(violations(WHOLE[client], JSON.parse(decode(reply.body)), writer)).toEqual([]);
        });
      }
    });
  }
}
