/**
 * A page that needs nothing from anywhere: one style, no script, no request. The policy allows that one style by its
 * hash, and nothing else.
 */
export interface Page {
  readonly html: string;
  readonly policy: string;
}

export function makePage(title: string, style: string, body: string): Page {
  const css = BASE_STYLE + style;
  const hash = new Bun.CryptoHasher("sha256").update(css).digest("base64");
  return {
    policy: `default-src 'none'; style-src 'sha256-${hash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
    html: `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escapeHtml(title)}</title>
<style>${css}</style>
</head>
<body>
${body}
</body>
</html>
`,
  };
}

export const page = ({ html, policy }: Page): Response =>
  new Response(html, {
    headers: {
      "content-type": "text/html; charset=utf-8",
      "content-security-policy": policy,
      "x-content-type-options": "nosniff",
      "referrer-policy": "no-referrer",
    },
  });

export const escapeHtml = (text: string): string =>
  text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);

const BASE_STYLE = `
:root {
  --ink: #1b1f24; --soft: #59636e; --line: #d9dee4; --paper: #ffffff; --tint: #f5f7f9; --accent: #0b62c4;
  --good: #12733a; --bad: #b3261e;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ink: #e7ebef; --soft: #9aa5b1; --line: #313a44; --paper: #14181d; --tint: #1c2229; --accent: #6cb0ff;
    --good: #5bd08a; --bad: #ff8a80;
  }
}
* { box-sizing: border-box; }
html { scroll-padding-top: 1.5rem; }
body {
  margin: 0 auto; max-width: 62rem; padding: 2.5rem 1.25rem 5rem; background: var(--paper); color: var(--ink);
  font: 16px/1.6 system-ui, sans-serif;
}
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 .5rem; letter-spacing: -.02em; }
h2 { font-size: 1.15rem; line-height: 1.3; margin: 0; }
p { margin: .5rem 0; }
a { color: var(--accent); text-underline-offset: .2em; }
code { font: .92em/1.5 ui-monospace, monospace; }
.lead { color: var(--soft); max-width: 46rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .93rem; }
th, td { text-align: left; padding: .55rem .9rem .55rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
th { color: var(--soft); font-weight: 600; }
`;
