import { describe, expect, test } from "bun:test";
import { deflateSync } from "node:zlib";
import { boundFiles } from "../../src/tokens/files.ts";
import { pdfTokenBound } from "../../src/tokens/pdf.ts";

const IMAGE = 5_000;
const bound = (file: Buffer) => pdfTokenBound(file, IMAGE);

type Objects = Record<number, string | { dictionary?: string; stream: string | Buffer; deflate?: boolean }>;

/** A file of these objects; object 1 is its catalog. */
function pdf(objects: Objects, tail = ""): Buffer {
  const parts: Buffer[] = [Buffer.from("%PDF-1.7\n%\xe2\xe3\xcf\xd3\n", "latin1")];
  for (const [number, object] of Object.entries(objects)) {
    if (typeof object === "string") {
      parts.push(Buffer.from(`${number} 0 obj\n${object}\nendobj\n`, "latin1"));
      continue;
    }
    const { dictionary = "", stream, deflate = false } = object;
    const plain = Buffer.from(stream as string, "latin1");
    const data = deflate ? deflateSync(plain) : plain;
    const filter = deflate ? "/Filter /FlateDecode" : "";
    const head = `${number} 0 obj\n<< /Length ${data.length} ${filter} ${dictionary} >>\nstream\n`;
    parts.push(Buffer.from(head), data, Buffer.from("\nendstream\nendobj\n"));
  }
  parts.push(Buffer.from(`${tail}trailer\n<< /Size 9 /Root 1 0 R >>\nstartxref\n0\n%%EOF\n`));
  return Buffer.concat(parts);
}

const CATALOG = "<< /Type /Catalog /Pages 2 0 R >>";
const tree = (...kids: number[]) =>
  `<< /Type /Pages /Kids [${kids.map((kid) => `${kid} 0 R`).join(" ")}] /Count 1 >>`;
const page = (contents: string) => `<< /Type /Page /Parent 2 0 R /Contents ${contents} /Resources 5 0 R >>`;
const RESOURCES = "<< /Font << /F1 6 0 R >> /XObject << /X1 7 0 R >> >>";
const FONT = "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>";
const show = (text: string) => `BT /F1 12 Tf (${text}) Tj ET\n`;

/** One page that shows so many bytes. */
const letter = (content: string, more: Objects = {}): Objects => ({
  1: CATALOG,
  2: tree(3),
  3: page("4 0 R"),
  4: { stream: content, deflate: true },
  5: RESOURCES,
  6: FONT,
  ...more,
});
const HUNDRED = "a".repeat(100);
/** A string's closing bracket counts with it. */
const SHOWN = (100 + 1) * 3;

describe("a PDF costs at most", () => {
  test("an image for each page, and three bytes of text for each byte that it shows", () => {
    expect(bound(pdf(letter(show(HUNDRED))))).toBe(IMAGE + SHOWN);
    expect(bound(pdf(letter("0 0 m 100 100 l S")))).toBe(IMAGE);
  });

  test("half as much for letters of two bytes", () => {
    const font = "<< /Type /Font /Subtype /Type0 /Encoding /Identity-H /DescendantFonts [8 0 R] >>";
    const hex = letter("BT /F1 12 Tf <00410042> Tj [<0043> -20 <0044>] TJ ET", { 6: font });
    expect(bound(pdf(hex))).toBe(IMAGE + 8 * 1.5);
  });

  test.each<[string, Objects, number, number]>([
    ["a content that three pages share", { 2: tree(3, 8, 9), 8: page("4 0 R"), 9: page("[4 0 R]") }, 3, 3],
    ["a page that the tree names four times", { 2: tree(3, 3, 3, 3) }, 4, 4],
    [
      "branches that are named again and again",
      { 2: tree(8, 8, 8), 8: tree(9, 9, 9), 9: tree(3, 3, 3) },
      27,
      27,
    ],
    ["contents in a list elsewhere", { 3: page("8 0 R"), 8: "[4 0 R 4 0 R]" }, 1, 2],
    ["no contents", { 3: "<< /Type /Page /Parent 2 0 R >>" }, 1, 0],
  ])("each as often as it is there: %s", (_, more, pages, times) => {
    expect(bound(pdf(letter(show(HUNDRED), more)))).toBe(pages * IMAGE + times * SHOWN);
  });

  test("forms as often as they are drawn, within each other too", () => {
    const form = (content: string) => ({
      dictionary: "/Type /XObject /Subtype /Form",
      stream: content,
      deflate: true,
    });
    const ten = "/X2 Do ".repeat(10);
    const nested = letter("/X1 Do /X1 Do", {
      5: "<< /XObject << /X1 7 0 R /X2 8 0 R >> >>",
      7: form(ten),
      8: form(show(HUNDRED)),
    });
    expect(bound(pdf(nested))).toBe(IMAGE + 2 * 10 * SHOWN);
    // The larger of what a name may mean.
    const other = {
      ...nested,
      10: "<< /XObject << /X2 11 0 R >> >>",
      11: form(show(HUNDRED) + show(HUNDRED)),
    };
    expect(bound(pdf(other))).toBe(IMAGE + 2 * 10 * 2 * SHOWN);
  });

  test("as much as a font says that one letter stands for", () => {
    const long = Buffer.from("x".repeat(50), "utf16le").swap16().toString("hex");
    const map = (rows: string) => ({
      6: "<< /Type /Font /Subtype /TrueType /ToUnicode 8 0 R >>",
      8: { stream: `1 begincodespacerange <00> <FF> endcodespacerange ${rows}`, deflate: true },
    });
    const of = (rows: string) => bound(pdf(letter(show(HUNDRED), map(rows))));
    expect(of(`1 beginbfchar <41> <${long}> endbfchar`)).toBe(IMAGE + 101 * 50);
    expect(of(`1 beginbfrange <41> <42> <${long}> endbfrange`)).toBe(IMAGE + 101 * 52);
    expect(of(`1 beginbfrange <41> <42> [<${long}> <0041>] endbfrange`)).toBe(IMAGE + 101 * 52);
    expect(of("1 beginbfchar <41> <0041> endbfchar")).toBe(IMAGE + SHOWN);
  });

  test("the same where its objects are packed", () => {
    const packed = [CATALOG, tree(3), page("4 0 R"), RESOURCES, FONT];
    const numbers = [1, 2, 3, 5, 6];
    let offset = 0;
    const index = packed.map((object, at) => {
      const entry = `${numbers[at]} ${offset}`;
      offset += object.length + 1;
      return entry;
    });
    const first = `${index.join(" ")} `;
    const stream = {
      dictionary: `/Type /ObjStm /N 5 /First ${first.length}`,
      stream: first + packed.join("\n"),
      deflate: true,
    };
    expect(bound(pdf({ 4: { stream: show(HUNDRED), deflate: true }, 9: stream }))).toBe(IMAGE + SHOWN);
  });

  test("text that stands aside, such as its title, once", () => {
    expect(bound(pdf(letter(show(HUNDRED), { 8: `<< /Title (${HUNDRED}) >>` })))).toBe(IMAGE + 2 * SHOWN);
  });

  test("brackets and escapes within strings", () => {
    expect(bound(pdf(letter("BT (a(b)c\\)\\() Tj /X1 Do ET", { 7: "<< /Subtype /Image >>" })))).toBe(
      IMAGE + 8 * 3,
    );
    expect(bound(pdf(letter(show("what you Do with /X1 Do"))))).toBe(IMAGE + 24 * 3);
  });
});

describe("nobody can tell what a PDF costs", () => {
  const text = show(HUNDRED);
  const file = (more: Objects, tail?: string) => () => pdf(letter(text, more), tail);
  const content = (stream: string) => () => pdf(letter(stream));
  const form = (stream: string): Objects[number] => ({ dictionary: "/Subtype /Form", stream });

  test.each<[string, () => Buffer]>([
    ["that is encrypted", file({}, "trailer << /Encrypt 8 0 R >>\n")],
    [
      "with an object that is there twice",
      file({}, `4 0 obj\n<< /Length 2 >>\nstream\n \nendstream\nendobj\n`),
    ],
    ["with an object inside another", file({ 8: { stream: "3 0 obj << /Type /Page >> endobj" } })],
    ["with two trailers that disagree", file({}, "trailer << /Root 8 0 R >>\n")],
    [
      "without a trailer",
      () => Buffer.from(pdf(letter(text)).toString("latin1").replace("/Root", "/Toor"), "latin1"),
    ],
    ["with an escape in a name", file({ 2: "<< /Type /Pages /K#69ds [3 0 R] >>" })],
    ["whose trailer has an escape in a name", file({}, "trailer << /Ro#6ft 8 0 R >>\n")],
    ["whose tree names an object that is not there", file({ 2: tree(3, 77) })],
    ["whose tree is a ring", file({ 2: tree(3, 2) })],
    ["whose tree lists its pages twice", file({ 2: "<< /Kids [3 0 R] /Kids [3 0 R 3 0 R] >>" })],
    ["whose forms draw each other", () => pdf(letter("/X1 Do", { 7: form("/X1 Do") }))],
    ["with a form that is named by an escape", content("/X#31 Do")],
    ["with forms to fill in", file({ 1: "<< /Type /Catalog /Pages 2 0 R /AcroForm 8 0 R >>" })],
    ["with notes on its pages", file({ 8: "<< /Type /Annot /AP << /N 7 0 R >> >>" })],
    ["whose content is packed otherwise", file({ 4: { dictionary: "/Filter /LZWDecode", stream: text } })],
    [
      "whose content is packed twice",
      file({ 4: { dictionary: "/Filter [/FlateDecode /FlateDecode]", stream: text } }),
    ],
    ["whose content is in another file", file({ 4: { dictionary: "/F (other)", stream: "" } })],
    [
      "whose content is torn",
      file({
        4: { dictionary: "/Filter /FlateDecode", stream: deflateSync(Buffer.from(text)).subarray(0, 20) },
      }),
    ],
    ["whose content ends in the middle of a string", content("BT (abc")],
    ["whose content ends in the middle of a hexadecimal string", content("BT <0041")],
    ["with a comment in a content", content(`% (\n${text}`)],
    ["with an image in a content", content(`BI /W 1 ID ( EI ${text}`)],
    [
      "with names for whole words",
      file({ 6: "<< /Subtype /Type1 /Encoding << /Differences [65 /uni004100420043] >> >>" }),
    ],
    [
      "whose tables build on others",
      file({ 6: "<< /Subtype /Type1 /ToUnicode 8 0 R >>", 8: { stream: "/Other usecmap" } }),
    ],
    [
      "that unpacks to more than there is memory for",
      file({
        4: { stream: Buffer.alloc(40_000_000, " "), deflate: true },
        8: Buffer.alloc(2_000_000, " ").toString(),
      }),
    ],
    ["that swells like no text", file({ 4: { stream: Buffer.alloc(4_000_000, " "), deflate: true } })],
    // Reading these to their ends takes hours.
    [
      "whose tables begin and never end",
      file({
        6: "<< /Subtype /Type1 /ToUnicode 8 0 R >>",
        8: { stream: "beginbfchar ".repeat(500_000) },
      }),
    ],
    [
      "that names a large table again and again",
      file({
        6: `<< /Subtype /Type1 ${"/ToUnicode 8 0 R ".repeat(150_000)}>>`,
        8: { stream: "<0041>\n".repeat(400_000) },
      }),
    ],
    [
      "with many pages of the same many contents",
      () => {
        const pages = Array.from({ length: 20_000 }, (_, at) => [100 + at, page("8 0 R")] as const);
        const kids = tree(...pages.map(([number]) => number));
        return pdf(
          letter(text, { 2: kids, 8: `[${"4 0 R ".repeat(200_000)}]`, ...Object.fromEntries(pages) }),
        );
      },
    ],
    ["that is cut off", () => pdf(letter(text)).subarray(0, 300)],
    ["that is empty", () => Buffer.from("%PDF-1.7\n")],
  ])("%s", (_, make) => expect(bound(make())).toBeNull());
});

test("files of a prompt are bounded together, and not at all when one of them is not", () => {
  const embedded = (file: Buffer) => `data:application/pdf;base64,${file.toString("base64")}`;
  const part = (file: Buffer) => ({ type: "file", file: { filename: "a.pdf", file_data: embedded(file) } });
  const prompt = (...files: Buffer[]) =>
    boundFiles({ messages: [{ role: "user", content: files.map(part) }] });
  const small = pdf(letter(show(HUNDRED)));
  expect(prompt()).toBe(0);
  expect(prompt(small, small)).toBe(2 * (IMAGE + SHOWN));
  expect(prompt(Buffer.from("Plain words, ä."))).toBe(16);
  expect(prompt(small, Buffer.from("PK\x03\x04 a packed document\0"))).toBeNull();
  expect(prompt(small, Buffer.from([0xff, 0xfe, 0x41, 0x00]))).toBeNull();
  const source = { type: "base64", media_type: "application/pdf", data: small.toString("base64") };
  const document = { type: "document", source };
  expect(boundFiles({ messages: [{ role: "user", content: [document] }] })).toBe(IMAGE + SHOWN);
});

test("what one host reads as a PDF and another as text comes to the larger", () => {
  const file = pdf(letter(show(HUNDRED)));
  const as = (type: string, bytes: Buffer) => {
    const part = {
      type: "input_file",
      filename: "a",
      file_data: `data:${type};base64,${bytes.toString("base64")}`,
    };
    return boundFiles({ input: [{ role: "user", content: [part] }] });
  };
  expect(as("application/pdf", file)).toBe(IMAGE + SHOWN);
  expect(as("text/plain", file)).toBeNull();
  const plain = letter(show(HUNDRED), { 4: { stream: show(HUNDRED) } });
  const words = "% and so on\n".repeat(10_000);
  const both = Buffer.from(
    pdf(plain, words)
      .toString("latin1")
      .replace(/^%[^ -~]+$/m, "%"),
    "latin1",
  );
  for (const type of ["application/pdf", "text/plain"]) expect(as(type, both)).toBe(both.length);
});
