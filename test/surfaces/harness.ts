import { expect } from "bun:test";
import type { SurfaceName } from "../../src/catalog/catalog.ts";
import type { Billed, GenerationRequest, ReadReply, StreamJudge, Usage } from "../../src/surfaces/surface.ts";
import { pairing, SURFACES } from "../../src/surfaces/surfaces.ts";
import { refused } from "../../src/units/errors/refusal.ts";

export const METADATA = { publicModel: "test/model", atS: 1_763_000_000 };

/** A request that leaves a host free to answer as any of them does. */
export function openRequest(surface: SurfaceName, stream: boolean): GenerationRequest {
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
  return readRequest(surface, { model: "test/model", stream, ...more });
}

export function readRequest(surface: SurfaceName, body: object): GenerationRequest {
  return SURFACES[surface].readRequest(encode(JSON.stringify(body))) as GenerationRequest;
}

/** What is left out of a request with these members on its way to a host of another language. */
export function omitted(
  client: SurfaceName,
  host: SurfaceName,
  more: Record<string, unknown>,
): readonly string[] {
  const prompt = client === "responses" ? { input: "Hi" } : { messages: [{ role: "user", content: "Hi" }] };
  const ceiling = client === "messages" ? { max_tokens: 100 } : {};
  const request = SURFACES[client].readRequest(
    encode(JSON.stringify({ model: "a/b", ...prompt, ...ceiling, ...more })),
  );
  if (refused(request)) throw new Error(request.message);
  const body = pairing(client, host).hostBody(request, {
    model: "host-model",
    publicModel: "a/b",
    stream: false,
    quirks: {},
    maxOutputTokens: null,
    defaultMaxOutputTokens: 100,
  });
  if (refused(body)) throw new Error(body.message);
  return body.omitted;
}

/** The whole stream of a host that ends well, as the client gets it. */
export function given(judge: StreamJudge, chunks: Iterable<Uint8Array>): string {
  const text = givenSoFar(judge, chunks);
  expect(judge.fault).toBeNull();
  return text + lastOf(judge);
}

/** What the client is sent when the stream is settled. */
export const lastOf = (judge: StreamJudge): string => decode(judge.last(billOf(judge)));

/** The whole answer, as the client gets it. */
export function bodyOf(reply: ReadReply): string {
  if (reply.kind === "fault") throw new Error(reply.error.message);
  return decode(reply.body(billOf(reply)));
}

/** A bill of what the host reported, or else of what was counted. */
export function billOf(reported: { readonly usage: Usage | null; readonly countedTokens: number }): Billed {
  const counted = { input: 1, cacheRead: 0, cacheWrite: 0, output: reported.countedTokens, reasoning: 0 };
  return { tokens: reported.usage ?? counted, costUsd: COST_USD };
}

export const COST_USD = 0.000_000_123;

/** What was given before the end mark, or the fault. */
export function givenSoFar(judge: StreamJudge, chunks: Iterable<Uint8Array>): string {
  const parts: Uint8Array[] = [];
  for (const chunk of chunks) parts.push(judge.push(chunk).slice());
  parts.push(judge.end());
  return decode(Buffer.concat(parts));
}

/** Each is made when it is asked for. */
export function* inPieces(bytes: Uint8Array, size: number): Generator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.slice(at, at + size);
}

export const encode = (text: string): Uint8Array => new TextEncoder().encode(text);
export const decode = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);
