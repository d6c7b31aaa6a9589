import type { ApiDocument, Operation, Parameter, ResponseObject } from "./openapi.ts";
import { escapeHtml, type HtmlPage, makePage } from "./page.ts";

/** The API's document for people: an index of every operation, then what each takes and answers. */
export function apiPage({ info, servers, paths, components, tags }: ApiDocument): HtmlPage {
  const rows = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
  );
  const groups = tags.map(({ name }) => ({
    name,
    rows: rows.filter(({ operation }) => operation.tags.includes(name)),
  }));
  return makePage(
    "API reference",
    STYLE,
    `<header>
<h1>API reference</h1>
<p class="lead">${escapeHtml(info.description ?? "")}</p>
<p>Base address: <code>${escapeHtml(servers[0]?.url ?? "")}</code>. The same as an OpenAPI document: <a href="../openapi.json">openapi.json</a>.
Every error is explained in the <a href="errors">errors reference</a>.</p>
</header>
<nav>${groups.map(index).join("\n")}</nav>
<div class="sections">
${groups.map((group) => `<h2 class="group">${escapeHtml(group.name)}</h2>\n${group.rows.map(section).join("\n")}`).join("\n")}
<h2 class="group">Schemas</h2>
${Object.entries(components.schemas).map(schemaSection).join("\n")}
</div>`,
    "../",
  );
}

interface OperationRow {
  readonly method: string;
  readonly path: string;
  readonly operation: Operation;
}

const index = ({ name, rows }: { readonly name: string; readonly rows: readonly OperationRow[] }): string =>
  `<div><h3>${escapeHtml(name)}</h3><ul>${rows
    .map(
      ({ method, path, operation }) =>
        `<li><a href="#${operation.operationId}"><code>${method} ${escapeHtml(path)}</code></a></li>`,
    )
    .join("")}</ul></div>`;

function section({ method, path, operation }: OperationRow): string {
  const { operationId, summary, description, security, parameters = [], requestBody, responses } = operation;
  const who = security.map((one) => Object.keys(one)[0] ?? "none");
  return `<section id="${operationId}">
<h3><a href="#${operationId}"><code>${method} ${escapeHtml(path)}</code></a></h3>
<p>${escapeHtml(summary)}.${description === undefined ? "" : ` ${escapeHtml(description)}`}</p>
<p class="facts">Credential: ${who.length === 0 ? "none" : who.join(" or ")}</p>
${parameters.length === 0 ? "" : block("Parameters", parameters.map(parameterLine).join("\n"))}
${requestBody === undefined ? "" : block("Request body", shown(requestBody.content["application/json"]?.schema))}
${Object.entries(responses)
  .filter(([status]) => status !== "default")
  .map(([status, answer]) => block(`Response ${status}`, answerText(answer)))
  .join("\n")}
</section>`;
}

const schemaSection = ([name, schema]: [string, unknown]): string =>
  `<section id="schema-${name}"><h3><code>${escapeHtml(name)}</code></h3>${block("Fields", shown(schema))}</section>`;

const block = (title: string, text: string): string =>
  `<div class="block"><strong>${title}</strong><pre>${linked(escapeHtml(text))}</pre></div>`;

/** References are written as `→ Name`, which becomes a link once everything is escaped. */
const linked = (html: string): string =>
  html.replaceAll(/→ (\w+)/g, (_, name) => `→ <a href="#schema-${name}">${name}</a>`);

function parameterLine({ name, in: location, schema }: Parameter): string {
  const { description, minimum, maximum, default: fallback } = schema as JsonSchema;
  const notes = [
    ...(minimum === undefined || maximum === undefined ? [] : [`${minimum} to ${maximum}`]),
    ...(fallback === undefined ? [] : [`${fallback} by default`]),
    ...(description === undefined ? [] : [description]),
  ];
  return `${name} (${location}): ${shown(schema)}${notes.length === 0 ? "" : `   — ${notes.join("; ")}`}`;
}

function answerText({ content }: ResponseObject): string {
  if (content === undefined) return "no body";
  return Object.entries(content)
    .map(([type, { schema }]) => (type === "application/json" ? shown(schema) : type))
    .map((text) => (text === "object" ? "application/json" : text))
    .join("\nor ");
}

/** A schema as one reads JSON: members with their types, `?` where they may be missing. */
function shown(schema: unknown, indent = ""): string {
  const { $ref, anyOf, properties, required = [], items, enum: values, ...rest } = schema as JsonSchema;
  if ($ref !== undefined) return `→ ${$ref.split("/").at(-1)}`;
  if (anyOf !== undefined) return anyOf.map((one) => shown(one, indent)).join(" | ");
  if (values !== undefined) return values.map((value) => JSON.stringify(value)).join(" | ");
  if (rest.const !== undefined) return JSON.stringify(rest.const);
  if (items !== undefined) return `[${shown(items, indent)}]`;
  if (properties === undefined || Object.keys(properties).length === 0) return simple(rest);
  const inner = `${indent}  `;
  const lines = Object.entries(properties).map(([name, member]) => {
    const note = member.description === undefined ? "" : `   — ${member.description}`;
    return `${inner}${name}${required.includes(name) ? "" : "?"}: ${shown(member, inner)}${note}`;
  });
  return `{\n${lines.join("\n")}\n${indent}}`;
}

const simple = ({ type = "any", format, description }: JsonSchema): string =>
  type === "object" && description !== undefined
    ? `object: ${description}`
    : `${type}${format ? ` (${format})` : ""}`;

interface JsonSchema {
  readonly $ref?: string;
  readonly type?: string;
  readonly format?: string;
  readonly description?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly default?: unknown;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly JsonSchema[];
  readonly items?: JsonSchema;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
}

const STYLE = `
main > nav { display: grid; grid-template-columns: repeat(auto-fill, minmax(18rem, 1fr)); gap: .5rem 2rem; margin-top: 1.5rem; }
main > nav ul { list-style: none; margin: .2rem 0 0; padding: 0; font-size: .9rem; line-height: 1.7; }
main > nav a { display: inline-block; min-height: 24px; }
h3 { margin: 0; font-size: 1rem; }
.sections { display: grid; gap: 1rem; }
.group { margin: 2rem 0 0; }
section { min-width: 0; border: 1px solid var(--line); border-radius: .6rem; padding: 1.1rem 1.3rem; background: var(--card); }
section:target { border-color: var(--accent); }
section h3 a { color: inherit; text-decoration: none; }
.facts, .block strong { color: var(--soft); font-size: .88rem; font-weight: 600; }
pre { margin: .2rem 0 .6rem; padding: .7rem .9rem; white-space: pre-wrap; overflow-wrap: anywhere; border-radius: .4rem; background: var(--tint); font: .85rem/1.5 var(--mono); }
`;
