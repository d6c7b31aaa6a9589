import { ERROR_CODES, ERRORS, type ErrorCode } from "../../units/errors/codes.ts";
import { escapeHtml, type HtmlPage, makePage } from "./page.ts";

/**
 * The errors reference: every message's link lands on the anchor of its code here. Made from the table
 * itself.
 */
export const errorsPage = (): HtmlPage =>
  makePage(
    "Errors reference",
    STYLE,
    `<header>
<h1>Errors reference</h1>
<p class="lead">Every error has the body <code>{"error": {"message", "type", "code", "param"}}</code>. The code is stable; the message
is for people and may change. <em>Retryable</em> means that the identical request may succeed later: wait as long as
<code>Retry-After</code> says, and back off where that header is absent. Every response under <code>/v1</code> carries its receipt id
in the header <code>x-gateway-receipt</code>.</p>
</header>
<div class="scroll">
<table>
<thead><tr><th>Code</th><th>Status</th><th>Type</th><th>Retryable</th></tr></thead>
<tbody>
${ERROR_CODES.map(tableRow).join("\n")}
</tbody>
</table>
</div>
<div class="sections">
${ERROR_CODES.map(section).join("\n")}
</div>`,
    "../",
  );

function tableRow(code: ErrorCode): string {
  const { status, type, retryable } = ERRORS[code];
  return `<tr><td><a href="#${code}"><code>${code}</code></a></td><td>${status}</td><td><code>${type}</code></td><td>${retryable ? "yes" : "no"}</td></tr>`;
}

function section(code: ErrorCode): string {
  const { status, type, retryable, when, fix } = ERRORS[code];
  return `<section id="${code}">
<h2><a href="#${code}"><code>${code}</code></a></h2>
<p class="tags"><span>HTTP ${status}</span><span>${type}</span>${retryable ? `<span class="again">retryable</span>` : `<span>not retryable</span>`}</p>
<p>${escapeHtml(when)}</p>
<p><strong>What to do.</strong> ${escapeHtml(fix)}</p>
</section>`;
}

const STYLE = `
.sections { margin-top: 2.6rem; display: grid; gap: 1.1rem; }
.scroll, section { background: var(--card); border: 1px solid var(--line); border-radius: 14px; box-shadow: var(--shadow); }
.scroll { margin-top: 2rem; padding: .5rem 1.5rem; }
section { padding: 1.4rem 1.6rem; }
section:target { border-color: var(--accent); box-shadow: 0 0 0 1px var(--accent); }
section h2 a, td a { color: inherit; text-decoration: none; }
section h2 a:hover, td a:hover { text-decoration: underline; }
.tags { display: flex; flex-wrap: wrap; gap: .5rem; margin: .6rem 0 .8rem; }
.tags span { padding: .08rem .65rem; border-radius: 99px; background: var(--tint); color: var(--soft); font-size: .84rem; font-weight: 550; }
.tags .again { background: var(--wash); color: var(--good); }
section p { max-width: 48rem; }
@media (max-width: 640px) {
  thead { display: none; }
  tr { display: flex; flex-wrap: wrap; gap: .1rem 1rem; padding: .6rem 0; border-bottom: 1px solid var(--line); }
  tr:last-child { border-bottom: 0; }
  td { padding: 0; border: 0; }
  td:first-child { flex-basis: 100%; }
  td:last-child::before { content: "retryable: "; }
}
`;
