import { lexer, type MarkedToken, type Token, type Tokens } from "marked";
import { type ComponentChildren, createRef } from "preact";
import { CopyButton } from "../parts/copy-button.tsx";

/**
 * Markdown that a model wrote, or the authors of what the model read: text that may want to run scripts, or tell
 * others what is on the page. `marked` only finds its structure; the elements are made here, each by name. So HTML
 * stays text, no image is loaded, and a link leads to the web or a mailbox. What is too long or too deep to be read
 * in reasonable time is shown as it came.
 */
export function Markdown({ text }: { text: string }) {
  const tokens = parse(text);
  return tokens === null ? <div class="said-text">{text}</div> : <div class="prose">{blocks(tokens, 0)}</div>;
}

/** Null where the text had better be shown as it is. */
function parse(text: string): readonly Token[] | null {
  if (text.length > MAX_LENGTH) return null;
  try {
    return lexer(text);
  } catch {
    // Nested so deeply that the parser's stack did not hold it.
    return null;
  }
}

/** The parser is quadratic in the worst case: 0.1 s of hostile text at this length. */
const MAX_LENGTH = 16_000;
/** Deeper ones are shown as text: every level is a call on the stack. */
const MAX_DEPTH = 12;

const blocks = (tokens: readonly Token[], depth: number): ComponentChildren[] =>
  tokens.map((token, index) => block(token as MarkedToken, depth, index));

function block(token: MarkedToken, depth: number, key: number): ComponentChildren {
  if (depth > MAX_DEPTH) return token.raw;
  switch (token.type) {
    case "paragraph":
      return <p key={key}>{inlines(token.tokens, depth)}</p>;
    case "heading":
      // Beneath the page's own headings.
      return token.depth < 3 ? (
        <h3 key={key}>{inlines(token.tokens, depth)}</h3>
      ) : (
        <h4 key={key}>{inlines(token.tokens, depth)}</h4>
      );
    case "code":
      return <CodeBlock key={key} text={token.text} language={token.lang ?? ""} />;
    case "blockquote":
      return <blockquote key={key}>{blocks(token.tokens, depth + 1)}</blockquote>;
    case "list":
      return <List key={key} of={token} depth={depth} />;
    case "table":
      return <Table key={key} of={token} depth={depth} />;
    case "hr":
      return <hr key={key} />;
    case "space":
    case "def":
      return null;
    case "html":
      return token.block ? <p key={key}>{token.raw.trim()}</p> : token.raw;
    default:
      return inline(token, depth, key);
  }
}

const inlines = (tokens: readonly Token[], depth: number): ComponentChildren[] =>
  tokens.map((token, index) => inline(token as MarkedToken, depth, index));

function inline(token: MarkedToken, depth: number, key: number): ComponentChildren {
  if (depth > MAX_DEPTH) return token.raw;
  switch (token.type) {
    case "text":
      return token.tokens === undefined ? decoded(token.text) : inlines(token.tokens, depth + 1);
    case "escape":
      return token.text;
    case "strong":
      return <strong key={key}>{inlines(token.tokens, depth + 1)}</strong>;
    case "em":
      return <em key={key}>{inlines(token.tokens, depth + 1)}</em>;
    case "del":
      return <del key={key}>{inlines(token.tokens, depth + 1)}</del>;
    case "codespan":
      return <code key={key}>{token.text}</code>;
    case "br":
      return <br key={key} />;
    case "checkbox":
      return token.checked ? "☑ " : "☐ ";
    case "link":
      return (
        <Link key={key} href={token.autolink === true ? token.href : decoded(token.href)}>
          {token.autolink === true ? token.text : inlines(token.tokens.map(inLink), depth + 1)}
        </Link>
      );
    case "image":
      // Loading it would tell its host who reads this, and in its address whatever the model was made to put there.
      return (
        <Link key={key} href={decoded(token.href)}>
          {token.text === "" ? "image" : decoded(token.text)}
        </Link>
      );
    default:
      return token.raw;
  }
}

/** A link holds no other. */
const inLink = (token: Token): Token =>
  token.type === "image" ? { type: "text", raw: token.raw, text: token.text } : token;

const Link = ({ href, children }: { href: string; children: ComponentChildren }) => {
  const address = webAddress(href);
  return address === null ? (
    <span>{children}</span>
  ) : (
    <a href={address} title={address} target="_blank" rel="noopener noreferrer nofollow">
      {children}
    </a>
  );
};

/** A whole address of the web or of a mailbox; null for `javascript:`, `data:`, and what is relative to this page. */
export function webAddress(href: string): string | null {
  if (!URL.canParse(href)) return null;
  const { protocol, href: address } = new URL(href);
  return SCHEMES.has(protocol) ? address : null;
}

const SCHEMES: ReadonlySet<string> = new Set(["https:", "http:", "mailto:"]);

const List = ({ of, depth }: { of: Tokens.List; depth: number }) => {
  const items = of.items.map((item, index) => <li key={index}>{blocks(item.tokens, depth + 1)}</li>);
  return of.ordered ? <ol start={of.start === "" ? 1 : of.start}>{items}</ol> : <ul>{items}</ul>;
};

/** Scrolls in itself, as code does: the page stays as wide as the window. */
const Table = ({ of, depth }: { of: Tokens.Table; depth: number }) => {
  const cell = ({ tokens, align }: Tokens.TableCell, index: number) => {
    const alignment = align === "right" ? { class: "end" } : {};
    return (
      <td key={index} {...alignment}>
        {inlines(tokens, depth + 1)}
      </td>
    );
  };
  return (
    <Scrolled label="Table">
      <table>
        <thead>
          <tr>
            {of.header.map(({ tokens, align }, index) => (
              <th key={index} scope="col" class={align === "right" ? "end" : ""}>
                {inlines(tokens, depth + 1)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {of.rows.map((row, index) => (
            <tr key={index}>{row.map(cell)}</tr>
          ))}
        </tbody>
      </table>
    </Scrolled>
  );
};

function CodeBlock({ text, language }: { text: string; language: string }) {
  const shown = createRef<HTMLPreElement>();
  const name = /^[\w+#.-]{1,20}/.exec(language)?.[0] ?? "code";
  return (
    <figure class="code">
      <figcaption class="soft small">
        {name}
        <CopyButton key={text} label={name} value={text} shown={shown} />
      </figcaption>
      <Scrolled label={name}>
        <pre ref={shown}>{text}</pre>
      </Scrolled>
    </figure>
  );
}

const Scrolled = ({ label, children }: { label: string; children: ComponentChildren }) => (
  // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable with the keyboard
  <section class="scroll" tabIndex={0} aria-label={label}>
    {children}
  </section>
);

/** Character references, which `marked` leaves to HTML: the few that are written by hand, and numbers. */
const decoded = (text: string): string =>
  text.replace(/&(?:#(\d{1,7})|#[xX]([0-9a-fA-F]{1,6})|([a-z]{2,6}));/g, (whole, decimal, hex, name) => {
    if (name !== undefined) return NAMED[name] ?? whole;
    const point = decimal === undefined ? Number.parseInt(hex, 16) : Number(decimal);
    return point > 0 && point <= 0x10ffff ? String.fromCodePoint(point) : "\ufffd";
  });

const NAMED: Readonly<Record<string, string | undefined>> = Object.assign(Object.create(null), {
  amp: "&",
  lt: "<",
  gt: ">",
  quot: '"',
  apos: "'",
  nbsp: "\u00a0",
  copy: "©",
  ndash: "–",
  mdash: "—",
  hellip: "…",
  times: "×",
  rarr: "→",
});
