import { describe, expect, test } from "bun:test";
import type { SurfaceName } from "../../../src/catalog/catalog.ts";
import { pairing } from "../../../src/surfaces/surfaces.ts";
import { type Refusal, refused } from "../../../src/units/errors/refusal.ts";
import { readRequest } from "../harness.ts";
import { violations } from "../wire-schema.ts";

/** Files of OpenAI's clients on hosts of Messages, which take PDFs, texts and four kinds of pictures. */
const TARGET = {
  model: "host-model",
  publicModel: "test/model",
  stream: false,
  quirks: {},
  maxOutputTokens: null,
  defaultMaxOutputTokens: 100,
};
type Client = Exclude<SurfaceName, "messages">;
const CLIENTS: Client[] = ["chat.completions", "responses"];

const base64 = (text: string | Uint8Array) => Buffer.from(text).toString("base64");
const PDF = base64("%PDF-1.7 …");

function hostBodyOf(client: Client, data: string, name: string | null) {
  const file = { file_data: data, ...(name === null ? {} : { filename: name }) };
  const body =
    client === "responses"
      ? { input: [{ role: "user", content: [{ type: "input_file", ...file }] }] }
      : { messages: [{ role: "user", content: [{ type: "file", file }] }] };
  return pairing(client, "messages").hostBody(readRequest(client, { model: "test/model", ...body }), TARGET);
}

function picture(client: Client, url: string) {
  const part =
    client === "responses"
      ? { input: [{ role: "user", content: [{ type: "input_image", image_url: url }] }] }
      : { messages: [{ role: "user", content: [{ type: "image_url", image_url: { url } }] }] };
  return pairing(client, "messages").hostBody(readRequest(client, { model: "test/model", ...part }), TARGET);
}

function blockOf(body: ReturnType<typeof hostBodyOf>): Record<string, unknown> {
  if (refused(body)) throw new Error(body.message);
  const json = JSON.parse(Buffer.concat(body.parts).toString());
  expect(violations("messagesRequest", json)).toEqual([]);
  return json.messages[0].content[0];
}

const asText = (data: string) => ({ type: "text", media_type: "text/plain", data });

describe.each(CLIENTS)("a file of a client of %s", (client) => {
  const texts: [string, string | null, string][] = [
    ["text/plain", "notes.txt", "Grüße aus Oslo 🌍"],
    ["text/csv", "rows.csv", "a,b\n1,2\n"],
    ["text/markdown", "read.md", "# Title"],
    ["application/json", "data.json", '{"a":1}'],
    ["application/vnd.api+json", null, "{}"],
    ["application/octet-stream", "rows.csv", "a,b"],
    ["", "log.txt", "x"],
  ];
  test.each(texts)("of type %p called %p is sent as text", (type, name, text) => {
    const block = blockOf(hostBodyOf(client, `data:${type};base64,${base64(text)}`, name));
    expect(block).toEqual({
      type: "document",
      source: asText(text),
      ...(name === null ? {} : { title: name }),
    });
  });

  test("whose name ends like what every object has is of an unknown type", () => {
    const body = hostBodyOf(client, `data:;base64,${base64("a")}`, "notes.constructor");
    expect((body as Refusal).message).toContain("notes.constructor (unknown type)");
  });

  test("that is bare base64 is what its name or its beginning says", () => {
    expect(blockOf(hostBodyOf(client, base64("a,b"), "rows.csv")).source).toEqual(asText("a,b"));
    for (const name of ["paper.pdf", "paper", null])
      expect(blockOf(hostBodyOf(client, PDF, name)).source).toEqual({
        type: "base64",
        media_type: "application/pdf",
        data: PDF,
      });
  });

  test("that is a PDF stays one", () => {
    const source = { type: "base64", media_type: "application/pdf", data: PDF };
    expect(blockOf(hostBodyOf(client, `data:application/pdf;base64,${PDF}`, "a.pdf"))).toMatchObject({
      type: "document",
      source,
    });
  });

  test("that is a picture is shown as one", () => {
    const source = { type: "base64", media_type: "image/png", data: "iVBORw0KGgo=" };
    expect(blockOf(hostBodyOf(client, "data:image/png;base64,iVBORw0KGgo=", "a.png"))).toEqual({
      type: "image",
      source,
    });
  });

  const refusals: [string, string, string][] = [
    [
      "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
      "report.docx",
      base64(new Uint8Array([0x50, 0x4b, 3, 4])),
    ],
    ["application/octet-stream", "report.docx", base64(new Uint8Array([0x50, 0x4b, 3, 4]))],
    ["image/bmp", "a.bmp", "Qk0="],
    ["image/svg+xml", "a.svg", base64("<svg/>")],
    ["image/heic", "a.heic", "AAAA"],
    ["application/zip", "a.zip", "UEsDBA=="],
    ["text/plain", "latin.txt", base64(new Uint8Array([0xe4, 0xf6, 0xfc]))],
  ];
  test.each(refusals)("of type %s called %s is refused by its name", (type, name, data) => {
    const refusal = hostBodyOf(client, `data:${type};base64,${data}`, name) as Refusal;
    expect([refusal.code, refusal.details.param]).toEqual([
      "invalid_request",
      client === "responses" ? "input" : "messages",
    ]);
    expect(refusal.message).toContain(name);
  });

  test.each(["image/bmp", "image/svg+xml", "image/heic", "image/tiff"])(
    "as a picture of type %s is refused",
    (type) => {
      const refusal = picture(client, `data:${type};base64,AAAA`) as Refusal;
      expect(refusal.message).toContain(type);
    },
  );

  test("as a picture of another spelling is the same picture", () => {
    const { source } = blockOf(picture(client, "data:image/jpg;base64,/9j/")) as {
      source: { media_type: string };
    };
    expect(source.media_type).toBe("image/jpeg");
  });
});
