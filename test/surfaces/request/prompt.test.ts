import { describe, expect, test } from "bun:test";
import type { SurfaceName } from "../../../src/catalog/catalog.ts";
import { SURFACES } from "../../../src/surfaces/surfaces.ts";
import { refused } from "../../../src/units/errors/refusal.ts";

/** How large a prompt is taken to be before anybody has counted it. */
const LONG = "word ".repeat(10_000);

function size(surface: SurfaceName, more: object, written = (text: string) => text) {
  const body = written(JSON.stringify({ model: "a/b", max_tokens: 9, ...more }));
  const request = SURFACES[surface].readRequest(Buffer.from(body));
  if (refused(request)) throw new Error(request.message);
  return request;
}

const request = (...content: object[]) => ({ messages: [{ role: "user", content }] });

test("base64 of images and files is no text", () => {
  const source = { type: "base64", data: LONG };
  const image = size("messages", request({ type: "image", source }));
  expect(image).toMatchObject({ mediaTokens: 5_000, promptUnseen: false });
  expect(image.promptBound).toBeLessThan(5_300);
  const file = size("messages", request({ type: "document", source }));
  expect(file).toMatchObject({ mediaTokens: 0, promptHasFiles: true, promptUnseen: false });
  expect(file.promptBound).toBeLessThan(300);
  const audio = (data: string) => request({ type: "input_audio", input_audio: { data, format: "wav" } });
  const sound = `UklGR${LONG}`;
  expect(size("chat.completions", audio(sound))).toMatchObject({
    mediaTokens: Math.ceil(sound.length / 4),
    promptHasFiles: false,
  });
  // Packed silence, whatever it is called.
  expect(size("chat.completions", audio(`ZkxhQ${LONG}`)).promptHasFiles).toBe(true);
});

test("what is sound, and what of the prompt is not, is distinguished", () => {
  const text = { type: "text", text: LONG };
  const wav = { type: "input_audio", input_audio: { data: `UklGR${LONG}`, format: "wav" } };
  const file = { type: "file", file: { file_data: `data:Audio/mp3;base64,${LONG}` } };
  const pdf = { type: "file", file: { file_data: `data:application/pdf;base64,${LONG}` } };
  const withoutAudio = (...content: object[]) =>
    size("chat.completions", request(...content)).promptWithoutAudio;
  expect([withoutAudio(text), withoutAudio(text, pdf)]).toEqual([null, null]);
  const textAlone = size("chat.completions", request(text)).promptEstimate;
  for (const sound of [[wav], [file], [wav, file]]) {
    expect(withoutAudio(text, ...sound)).toBeGreaterThanOrEqual(textAlone);
    expect(withoutAudio(text, ...sound)).toBeLessThan(textAlone + 100);
  }
});

test.each<[string, object]>([
  ["arguments of a call", request({ type: "tool_use", input: { type: "image", source: { data: LONG } } })],
  ["a plain-text document", request({ type: "document", source: { type: "text", data: LONG } })],
  ["instructions", { system: [{ type: "image", text: LONG }], ...request({ type: "text", text: "Hi" }) }],
])("%s are text, whatever they look like", (_, more) => {
  expect(size("messages", more).promptBound).toBeGreaterThan(LONG.length);
});

describe("nobody knows how much the host adds", () => {
  const url = "https://example.org/a.pdf";
  test.each<[string, SurfaceName, object]>([
    ["a document by address", "messages", request({ type: "document", source: { type: "url", url } })],
    [
      "a document by id",
      "messages",
      request({ type: "document", source: { type: "file", file_id: "file_1" } }),
    ],
    ["a file by id", "chat.completions", request({ type: "file", file: { file_id: "file-1" } })],
    ["a file by address", "chat.completions", request({ type: "file", file: { file_data: url } })],
    [
      "a file of a response",
      "responses",
      { input: [{ role: "user", content: [{ type: "input_file", file_url: url }] }] },
    ],
    ["a template", "responses", { prompt: { id: "pmpt_1" } }],
    ["agents at the host", "responses", { input: "Hi", multi_agent: { enabled: true } }],
    [
      "a search",
      "messages",
      { ...request({ type: "text", text: "Hi" }), tools: [{ type: "web_search_20250305" }] },
    ],
    [
      "a search of chat",
      "chat.completions",
      { ...request({ type: "text", text: "Hi" }), web_search_options: {} },
    ],
    [
      "a summary of the conversation so far",
      "messages",
      {
        ...request({ type: "text", text: "Hi" }),
        context_management: { edits: [{ type: "compact_20260112" }] },
      },
    ],
    [
      "a summary that is all the answer",
      "messages",
      { ...request({ type: "text", text: "Hi" }), compaction: { type: "enabled" } },
    ],
  ])("%s", (_, surface, more) => expect(size(surface, more).promptUnseen).toBe(true));

  test("a document whose kind is written in escapes", () => {
    const hidden = (text: string) => text.replace('"document"', '"\\u0064ocument"');
    const more = request({ type: "document", source: { type: "url", url } });
    expect(size("messages", more, hidden).promptUnseen).toBe(true);
  });
});

test("an image by address, and tools of the client's own, are known well enough", () => {
  const image = { type: "image_url", image_url: { url: "https://example.org/a.png" } };
  expect(size("chat.completions", request(image))).toMatchObject({ mediaTokens: 5_000, promptUnseen: false });
  const tools = [
    { type: "bash_20250124", name: "bash" },
    { name: "a", input_schema: {} },
  ];
  const context_management = { edits: [{ type: "clear_tool_uses_20250919" }] };
  const more = { ...request({ type: "text", text: "Hi" }), tools, context_management };
  expect(size("messages", more).promptUnseen).toBe(false);
});
