import { escapeHtml, makePage, type Page } from "./page.ts";

/** Everything that can be done with keys today is done through the API; the page says how. */
export const dashboardPage = (baseUrl: string): Page =>
  makePage(
    "Dashboard",
    STYLE,
    `<header><h1>Keys and credit</h1>
<p class="lead">Keys are managed through the API. Keep the recovery secret that comes with the first key: it is the owner's
credential, and nobody can restore it.</p></header>
${STEPS.map(([title, command]) => `<h2>${title}</h2><pre><code>${escapeHtml(command(baseUrl))}</code></pre>`).join("\n")}
<p>See the <a href="/docs/errors">errors reference</a> and the <a href="/status">status</a> of models and hosts.</p>`,
  );

const owner = `-H "Authorization: Bearer $RECOVERY_SECRET"`;

const STEPS: readonly (readonly [string, (baseUrl: string) => string])[] = [
  ["Create a key and a balance", (url) => `curl -X POST ${url}/v1/keys`],
  ["See the balance", (url) => `curl ${url}/v1/me -H "Authorization: Bearer $API_KEY"`],
  [
    "Create another key with a cap",
    (url) => `curl -X POST ${url}/v1/keys ${owner} -d '{"daily_limit_usd": 2}'`,
  ],
  ["Raise a limit", (url) => `curl -X PATCH ${url}/v1/keys/$KEY_ID ${owner} -d '{"rpm_limit": 600}'`],
  ["Replace a key that leaked, at once", (url) => `curl -X POST ${url}/v1/keys/$KEY_ID/rotate ${owner}`],
];

const STYLE = `
h2 { margin: 1.6rem 0 .4rem; }
pre { margin: 0; padding: .9rem 1.1rem; overflow-x: auto; border: 1px solid var(--line); border-radius: .6rem; background: var(--tint); }
`;
