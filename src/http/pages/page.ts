import type { About, MediaType } from "../../api/about.ts";
import type { Endpoint } from "../endpoint.ts";
import pageStyle from "./page.css" with { type: "text" };

/**
 * A page that needs nothing from anywhere: one style, no script, no request. The policy allows that one style
 * by its hash, and nothing else.
 */
export interface HtmlPage {
  readonly html: string;
  readonly policy: string;
}

/**
 * Links are relative, because the gateway may be mounted beneath a path: `root` is the way from the page to
 * the top, which is `../` for a page one level down.
 */
export const makePage = (
  title: string,
  style: string,
  body: string,
  root = "",
  use: PageUse = {},
): HtmlPage =>
  pageOf(
    title,
    READING_STYLE + style,
    "",
    `${bar(root)}<main class="reading">${body}</main>${use.script ? `<script>${use.script}</script>` : ""}`,
    use.script ? [`script-src 'sha256-${sha256(use.script)}'`] : [],
    use.hasForm ? "'self'" : "'none'",
  );

/** What few pages need: a script of their own, allowed by its hash, and a form that asks for the page again. */
interface PageUse {
  readonly script?: string;
  readonly hasForm?: boolean;
}

const sha256 = (text: string): string => new Bun.CryptoHasher("sha256").update(text).digest("base64");

const bar = (root: string): string => `<header class="bar">
<a class="brand" href="${root}dashboard">${MARK}<span>Gateway</span></a>
<nav aria-label="Pages"><a href="${root}dashboard">Dashboard</a><a href="${root}models">Models</a><a href="${root}status">Status</a><a href="${root}docs/api">API</a><a href="${root}docs/errors">Errors</a></nav>
</header>`;

const MARK = `<svg viewBox="0 0 32 32" width="30" height="30" aria-hidden="true"><rect width="32" height="32" rx="9"/><path d="M8 11h9M8 16h16M8 21h6"/></svg>`;

/**
 * A page that a script fills. `script` and `style` are addresses beneath this gateway, relative to the page.
 */
export const makeAppPage = (title: string, { script, style }: AppFiles): HtmlPage =>
  pageOf(
    title,
    "",
    `<link rel="stylesheet" href="${escapeHtml(style)}"><script type="module" src="${escapeHtml(script)}"></script>`,
    `<div id="app"></div><noscript><p>This page needs JavaScript. The API can do everything that it does.</p></noscript>`,
    // Trusted types: no text becomes markup or script, whatever a script's author overlooks.
    ["script-src 'self'", "connect-src 'self'", "require-trusted-types-for 'script'", "trusted-types 'none'"],
  );

export interface AppFiles {
  readonly script: string;
  readonly style: string;
}

function pageOf(
  title: string,
  style: string,
  head: string,
  body: string,
  rules: readonly string[],
  forms = "'none'",
): HtmlPage {
  const css = pageStyle + style;
  const styles = `style-src ${rules.length > 0 ? "'self' " : ""}'sha256-${sha256(css)}'`;
  return {
    policy: [
      "default-src 'none'",
      styles,
      "img-src data:",
      ...rules,
      "base-uri 'none'",
      `form-action ${forms}`,
      "frame-ancestors 'none'",
    ].join("; "),
    html: `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escapeHtml(title)}</title>
<link rel="icon" href="data:image/svg+xml,${encodeURIComponent(ICON)}">
<style>${css}</style>
${head}
</head>
<body>
${body}
</body>
</html>
`,
  };
}

const ICON = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="9" fill="#0b6556"/><path d="M8 11h9M8 16h16M8 21h6" stroke="#fff" stroke-width="2.6" stroke-linecap="round"/></svg>`;

/**
 * For what has no page around it to name an icon, as JSON that is opened in a browser: then the browser asks
 * for this.
 */
export const icon = (): Response =>
  new Response(ICON, {
    headers: {
      "content-type": "image/svg+xml",
      "cache-control": "public, max-age=86400",
      "content-security-policy": "default-src 'none'",
      "x-content-type-options": "nosniff",
    },
  });

/** What anybody may read, without a credential. */
export const openDocument = (
  path: string,
  type: MediaType,
  summary: string,
  handle: Endpoint["handle"],
  more: Partial<About> = {},
): Endpoint => ({
  method: "GET",
  path,
  about: { summary, who: [], answers: { 200: [type] }, ...more },
  handle,
});

export const page = ({ html, policy }: HtmlPage): Response =>
  new Response(html, {
    headers: {
      "content-type": "text/html; charset=utf-8",
      // A page names files by the hash of their content; an old page would name files that are gone.
      "cache-control": "no-cache",
      "content-security-policy": policy,
      "cross-origin-opener-policy": "same-origin",
      "x-content-type-options": "nosniff",
      "referrer-policy": "no-referrer",
    },
  });

export const escapeHtml = (text: string): string =>
  text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);

const READING_STYLE = `
.bar { display: flex; flex-wrap: wrap; justify-content: space-between; align-items: center; gap: .6rem 2rem; max-width: 64rem; margin: 0 auto; padding: 1.6rem 1.25rem 0; }
.bar .brand { display: flex; align-items: center; gap: .7rem; color: var(--ink); font-weight: 650; font-size: 1.05rem; letter-spacing: -.015em; text-decoration: none; }
.bar rect { fill: var(--accent); }
.bar path { stroke: var(--on-accent); stroke-width: 2.6; stroke-linecap: round; }
.bar nav { display: flex; flex-wrap: wrap; gap: .2rem 1.6rem; }
.bar nav a { color: var(--soft); text-decoration: none; font-weight: 500; }
.bar nav a:hover { color: var(--ink); }
.reading { margin: 0 auto; max-width: 64rem; padding: 2.6rem 1.25rem 5rem; }
`;
