import { expect } from "bun:test";
import { SURFACE_NAMES, type SurfaceName } from "../../../src/catalog/catalog.ts";
import { openingOf } from "../../../src/routing/conversation.ts";
import type { GenerationRequest, HostTarget } from "../../../src/surfaces/surface.ts";
import { pairing, SURFACES } from "../../../src/surfaces/surfaces.ts";
import { refused } from "../../../src/units/errors/refusal.ts";
import { mutated } from "../../fuzz/mutate.ts";
import type { Random } from "../../sim/random.ts";

/**
 * Bodies that the scan of large bodies and the parser might read differently, and the comparison of what is decided by
 * either of them.
 */

/** Throws where the scan decides anything else than the parser. True where the body was outlined. */
export function compare(surface: SurfaceName, body: Uint8Array): boolean {
  const parsed = SURFACES[surface].readRequest(body, Number.POSITIVE_INFINITY);
  const scanned = SURFACES[surface].readRequest(body, 0);
  if (refused(parsed) || refused(scanned)) {
    same(scanned, parsed);
    return false;
  }
  const { json, outline, list, ...facts } = scanned;
  const { json: whole, outline: _, list: none, ...factsParsed } = parsed;
  expect(none).toBeNull();
  same(facts, factsParsed);
  same(openingOf(scanned), openingOf(parsed));
  for (const target of TARGETS) same(sent(scanned, surface, target), sent(parsed, surface, target));
  isOutline(outline, whole);
  // Last, because it parses what was only scanned.
  same(json, whole);
  const other = SURFACE_NAMES.find((name) => name !== surface)!;
  same(sent(scanned, other, PLAIN), sent(parsed, other, PLAIN));
  return list !== null;
}

/** Ten times as fast as `expect`, where they are. */
function same(one: unknown, other: unknown): void {
  if (!Bun.deepEquals(one, other)) expect(one).toEqual(other);
}

function sent(request: GenerationRequest, host: SurfaceName, target: HostTarget): unknown {
  const body = pairing(request.surface, host).hostBody(request, target);
  if (refused(body)) return body;
  const { parts, omitted, content } = body;
  return { bytes: Buffer.concat(parts).toString(), omitted, size: content?.().size };
}

const PLAIN: HostTarget = {
  stream: true,
  model: "host-model",
  publicModel: "test/model",
  quirks: {},
  maxOutputTokens: null,
  defaultMaxOutputTokens: 1_000,
};
const TARGETS: readonly HostTarget[] = [
  PLAIN,
  { ...PLAIN, quirks: { accountReferences: true, ownTools: true }, marksCache: true },
  { ...PLAIN, stream: false, maxOutputTokens: 50, quirks: { knownFieldsOnly: true, strictMessages: true } },
];

/** The same but for texts of which the outline has the beginning alone. */
function isOutline(outline: unknown, whole: unknown): void {
  if (typeof whole === "string" && outline !== whole) {
    same([whole.startsWith(outline as string), (outline as string).length >= 32], [true, true]);
  } else if (typeof whole === "object" && whole !== null) {
    const names = Object.keys(whole);
    same([Array.isArray(outline), Object.keys(outline as object)], [Array.isArray(whole), names]);
    for (const name of names) isOutline((outline as Json)[name], (whole as Json)[name]);
  } else same(outline, whole);
}

type Json = Record<string, unknown>;

const LONG = `Text of a file, with "quotes", \\ and\n lines: ${"const value = await read(path);\n".repeat(12)}`;
const CJK = "日本語の長い文章。".repeat(40);
const BASE64 = "iVBORw0KGgoAAAANSUhEUgAA".repeat(20);
const SPACES = " ".repeat(400);

/** What hosts read as more than text, or what refuses a request: each alone and behind what would be cut. */
export const MARKS: readonly Json[] = [
  { file_id: "file-1" },
  { container_id: "c" },
  { vector_store_id: "v" },
  { skill_id: "s" },
  { file_id: `file-${LONG}` },
  { file: { file_id: "file-1" } },
  { type: "file", file: { filename: "a.pdf", file_data: `data:application/pdf;base64,${BASE64}` } },
  { audio: { id: "audio_1" } },
  { source: { type: "file", file_id: "f" } },
  { source: { type: "url", url: "file:///etc/passwd" } },
  { source: { type: "base64", media_type: "image/png", data: BASE64 }, type: "image" },
  { source: { type: "content", content: [{ type: "text", file_id: "f" }] }, type: "document" },
  { type: "image_url", image_url: { url: `data:image/png;base64,${BASE64}` } },
  { type: "image_url", image_url: { url: `https://example.com/${LONG}` } },
  { type: "input_image", image_url: `file:///${"a".repeat(400)}` },
  { type: "text", image_url: `${SPACES}file:///a` },
  { type: "text", image_url: `\n\t${SPACES}gs://a` },
  { type: "text", image_url: `\u00a0${SPACES}gs://a` },
  { type: "text", image_url: `${"\u3000".repeat(200)}gs://a` },
  { type: "text", image_url: `${"a".repeat(500)}:b` },
  { type: "text", image_url: `${"1".repeat(500)}:b` },
  { type: "text", file_url: `s3:${LONG}` },
  { type: "text", file_url: { url: `a ${"s3:".repeat(200)}` } },
  { type: "input_audio", input_audio: { data: `UklGR${BASE64}`, format: "wav" } },
  { type: "input_file", file_data: BASE64, filename: "a.pdf" },
  { type: "input_file", file_url: "https://example.com/a.pdf" },
  { cache_control: { type: "ephemeral", ttl: "1h" } },
  { cache_control: { type: "ephemeral", ttl: "2h" } },
  { cache_control: { type: "ephemeral", ttl: LONG } },
  { prompt_cache_breakpoint: { ttl: "1h" } },
  { type: "item_reference", id: "msg_1" },
  { type: "message", id: "msg_1" },
  { type: "reasoning", id: "rs_1" },
  { type: "reasoning", id: "rs_1", encrypted_content: LONG },
  { type: "reasoning", encrypted_content: `gwseal:1:messages/anthropic:signature:${LONG}` },
  { type: "thinking", thinking: "t", signature: `gwseal:1:responses/openai:encrypted:${LONG}` },
  { type: "compaction", encrypted_content: `gwsummary:1:${LONG}` },
  { type: "compaction_trigger" },
  { type: "additional_tools", tools: [{ type: "web_search" }] },
  { type: "additional_tools", tools: [{ type: `collections_search${LONG}` }] },
  { type: "additional_tools", tools: [{ type: "function", name: "f", description: LONG }] },
  { type: "tool_search_output", tools: [{ type: "namespace", tools: [{ type: `mcp${LONG}` }] }] },
  { type: `item_reference${LONG}`, id: "x" },
  { type: "text", text: LONG },
  { type: "text", text: CJK },
  { type: "text", [`${LONG}1`]: 1, [`${LONG}2`]: { file_id: "f" } },
  { type: "text", text: 'say "hi"', numbers: Array(200).fill(1) },
  { type: "text", text: "\\", numbers: Array(200).fill(1), more: '\\\\"' },
  { type: "text", text: `${LONG}\ud83d` },
  { type: "text", text: "😀".repeat(200) },
  { ["__proto__"]: { file_id: "f" } },
  { type: "text", text: `file_id container image "document" \\u0066 "ttl" ${LONG}` },
];

/** Conversations with a mark somewhere. */
const CONVERSATIONS: readonly ((mark: Json) => unknown[])[] = [
  (mark) => [user(LONG), { role: "user", content: LONG, ...mark }],
  (mark) => [user([{ type: "text", text: LONG }, mark]), user("Go on.")],
  (mark) => [user("Hello"), mark, user(LONG)],
  (mark) => [
    user(LONG),
    { role: "assistant", content: LONG },
    user([text(LONG), { ...text(LONG), ...mark }]),
  ],
  (mark) => [user([{ type: "tool_result", tool_use_id: "t", content: [text(LONG), mark] }, text(LONG)])],
  (mark) => [user(LONG), { type: "function_call_output", call_id: "c", output: [text(LONG), mark] }],
  (mark) => [user(LONG), { type: "function_call_output", call_id: "c", output: mark }],
  (mark) => [
    { role: "system", content: LONG },
    user(CJK),
    {
      role: "assistant",
      tool_calls: [{ id: "c", function: { name: "f", arguments: JSON.stringify({ ...mark, LONG }) } }],
    },
    { role: "tool", tool_call_id: "c", content: LONG },
  ],
];

const user = (content: unknown) => ({ role: "user", content });
const text = (words: string) => ({ type: "text", text: words });

export interface OutlinedCase {
  readonly surface: SurfaceName;
  readonly body: Buffer;
}

/** Every mark in every conversation, in every language, plain and with an escape in each of its names and values in turn. */
export function* markedCases(): Generator<OutlinedCase> {
  for (const mark of MARKS)
    for (const around of CONVERSATIONS)
      for (const surface of SURFACE_NAMES) {
        const body = JSON.stringify(bodyOf(surface, around(mark)));
        yield { surface, body: Buffer.from(body) };
        for (const spelt of spellings(JSON.stringify(mark)))
          yield {
            surface,
            body: Buffer.from(body.replaceAll(JSON.stringify(mark).slice(1, -1), spelt.slice(1, -1))),
          };
      }
}

/** With one letter of each of its texts escaped, one text after the other. */
function* spellings(json: string): Generator<string> {
  for (const { index, 0: word } of json.matchAll(/"[a-z_]{2,}/g)) {
    const code = word.charCodeAt(1).toString(16).padStart(4, "0");
    yield `${json.slice(0, index + 1)}\\u${code}${json.slice(index + 2)}`;
  }
}

export const bodyOf = (surface: SurfaceName, turns: readonly unknown[]): Json => ({
  model: "test/model",
  ...(surface === "messages" ? { max_tokens: 100, system: LONG } : {}),
  [surface === "responses" ? "input" : "messages"]: turns,
  stream: true,
});

/** A body with several marks, spoilt as JSON and as bytes. */
export function randomCase(random: Random): OutlinedCase {
  const surface = random.pick(SURFACE_NAMES);
  const turns = Array.from({ length: 1 + random.below(3) }, () =>
    random.pick(CONVERSATIONS)(random.pick(MARKS)),
  ).flat();
  const spaces = random.pick(["", "", "", " ", "\n\t", "\r\n  "]);
  let body = JSON.stringify(bodyOf(surface, turns), null, spaces);
  for (let change = random.below(4); change > 0; change--) body = random.pick(CHANGES)(body, random);
  const bytes = Buffer.from(body);
  return { surface, body: random.chance(0.4) ? mutated(bytes, random) : bytes };
}

/** One of those that the expression finds is replaced. */
function atOne(body: string, found: RegExp, random: Random, by: (found: string) => string): string {
  const all = [...body.matchAll(found)];
  if (all.length === 0) return body;
  const { index, 0: it } = random.pick(all);
  return `${body.slice(0, index)}${by(it)}${body.slice(index + it.length)}`;
}

const NAME = /"[a-zA-Z_]+"(?=\s*:)/g;
const escaped = (character: string) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;

const CHANGES: readonly ((body: string, random: Random) => string)[] = [
  // A name with an escape.
  (body, random) => atOne(body, NAME, random, (name) => `"${escaped(name[1]!)}${name.slice(2)}`),
  // A member twice, also with an escape in one of its names.
  (body, random) => {
    const value = random.pick(['"file-2"', "null", '{"ttl":"1h"}', "[]", '""']);
    const twin = (name: string) => (random.chance(0.5) ? name : `"${escaped(name[1]!)}${name.slice(2)}`);
    return atOne(body, NAME, random, (name) => `${twin(name)}:${value},${name}`);
  },
  // Another member next to one.
  (body, random) =>
    atOne(body, NAME, random, (name) => `${JSON.stringify(random.pick(MARKS)).slice(1, -1)},${name}`),
  // Nested as deep as allowed, and deeper.
  (body, random) => {
    const depth = random.pick([5, 120, 124, 125, 126, 127, 128, 129]);
    const [open, close] = random.pick([
      ["[", "]"],
      ['{"content":', "}"],
      ['{"content":[', "]}"],
    ] as const);
    return atOne(
      body,
      /"(?=[,}\]])/g,
      random,
      (quote) => `${quote},"deep":${open.repeat(depth)}1${close.repeat(depth)}`,
    );
  },
  // Within texts: control characters, escapes that are none, halves of characters.
  (body, random) =>
    atOne(body, /const value|の|Text of/g, random, (words) => {
      const odd = [
        "\n",
        "\u0000",
        "\u001f",
        "\\x",
        "\\u12",
        "\\u12g4",
        "\\",
        "\\ud83d",
        "\\\\\\",
        '\\"',
        '"',
        "\ud83d",
        "\ufeff",
      ];
      return `${random.pick(odd)}${words}`;
    }),
  // Values of other kinds.
  (body, random) =>
    atOne(
      body,
      /:\s*("[a-z_]*"|true|1)/g,
      random,
      () => `:${random.pick(["null", "NaN", "01", "1e5", "tru", "{}", "[]", "-0", '"\\u0031h"'])}`,
    ),
  // Byte order marks, and what follows the object.
  (body, random) =>
    random.pick([`\ufeff${body}`, `\ufeff\ufeff${body}`, `${body} `, `${body}x`, `${body}{}`, `[${body}]`]),
];
