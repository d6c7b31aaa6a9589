import { SURFACE_NAMES, type SurfaceName } from "../src/catalog/catalog.ts";
import { FIELDS, NESTED, type Verdict } from "../src/surfaces/vocabulary/fields.ts";

/** docs/surfaces.md from the tables that requests are judged by: `bun run document:surfaces > docs/surfaces.md`. */
export function surfacesDocument(): string {
  return [HEAD, ...SURFACE_NAMES.map(section), parts()].join("\n");
}

const HEAD = `# Languages: what is translated, left out, refused

A host of any of the three languages can serve a client of any of them. If both speak the same language, the body passes through
unchanged, except for what the host is known to refuse ([quirks](configuration.md#hosts)) and ceilings above the model's, which are lowered
(reasoning budgets to at most four fifths of the ceiling). Otherwise each field is

- **translated**: the host gets the same in its own language;
- **left out**: the answer means the same without it, and \`x-gateway-omitted\` names it. This includes fields that this page does not name;
- **refused**: the answer would mean something else. The request gets \`invalid_request\` with the field in \`param\`, unless another host of
  the plan can take it. A value that changes nothing (\`n: 1\`, a penalty of 0) is left out instead.

This page is generated from \`src/surfaces/vocabulary/fields.ts\`, the tables that requests are checked against.

| in an answer | chat.completions | responses | messages |
| --- | --- | --- | --- |
| the model is done | \`stop\` | \`completed\` | \`end_turn\` |
| a stop sequence | \`stop\` | \`completed\` | \`stop_sequence\` |
| tool calls | \`tool_calls\` | \`completed\` | \`tool_use\` |
| the ceiling, or the end of the context | \`length\` | \`incomplete\`: \`max_output_tokens\` | \`max_tokens\` |
| a filter | \`content_filter\` | \`incomplete\`: \`content_filter\` | \`refusal\` |
| reasoning | \`reasoning_content\`, \`reasoning\` and, with its seal, \`reasoning_details\` | \`reasoning\` item, sealed in \`encrypted_content\` | \`thinking\`, sealed in \`signature\` |
| tokens read from a cache | \`prompt_tokens_details.cached_tokens\` | \`input_tokens_details.cached_tokens\` | \`cache_read_input_tokens\` |
| tokens written to a cache | \`prompt_tokens_details.cache_write_tokens\` | \`input_tokens_details.cache_write_tokens\` | \`cache_creation_input_tokens\` |
| what it cost, in USD, as in the receipt | \`cost\` of the last \`usage\` | \`usage.cost\` of the response that ends it | \`usage.cost\` of the last \`message_delta\`, or of the message |
| reasoning tokens | \`completion_tokens_details.reasoning_tokens\` | \`output_tokens_details.reasoning_tokens\` | \`output_tokens_details.thinking_tokens\` |

A filter that ends an answer before any content is a [refusal](routing.md#refusals).

**Reasoning.** A seal holds a signature or encrypted reasoning of one family (the host's language and the model's author). Only that family gets it back;
other hosts get the conversation without that reasoning. A \`chat.completions\` client that excludes reasoning (\`reasoning.exclude: true\`,
\`include_reasoning: false\`) gets neither reasoning nor seals in a translated answer, but pays for its tokens. A \`responses\` client that leaves \`store\`
out gets encrypted reasoning, as OpenAI's Agents SDK expects. Earlier reasoning is left out if the client sends only its id.

**Tools.** Freeform (\`custom\`) tools become functions with one text argument on hosts of \`chat.completions\` and \`messages\`, and come back as
freeform calls. Tool names over 64 characters of a \`messages\` client are shortened at other hosts. If such a client adds or removes tools in mid-conversation
(\`tool_addition\`, \`tool_removal\`), other hosts get the tools that are there at its end. Instructions with \`clear_at: next_user_message\` are not sent
after that message.

**Text.** Cited pages (\`url_citation\`) reach clients of OpenAI's two languages; a \`messages\` client gets the text alone. Lists of texts and
thoughts, as from Mistral, reach chat clients as one text with \`reasoning_content\`. Hosts of \`responses\` have no stop sequences: the gateway cuts the answer
at the first one, and charges all that the host wrote. Hosts of \`messages\` need a message: instructions alone are sent as the user's turn.

**Stored things.** \`previous_response_id\`, \`conversation\`, \`background\`, \`store: true\`, \`thread\` and items by reference are
refused, because the gateway stores nothing; [over a WebSocket](clients.md#responses-over-websocket), \`previous_response_id\` names what the connection
remembers. Vercel's AI SDK refers to items unless \`providerOptions.openai.store\` is false.

**Codex.** Its \`input\` works on hosts of any language, including tools of an item \`additional_tools\`. \`compaction_trigger\` as the last item, or
\`POST /v1/responses/compact\`, makes hosts of other languages write a summary, which the client gets as an opaque item \`compaction\` and the next host
as text. Items that OpenAI encrypted can go back to hosts of \`responses\` only.

**Prompt caches.** Anthropic's \`cache_control\` and OpenAI's \`prompt_cache_breakpoint\` with \`prompt_cache_options\`
([\`quirks.cache_marks\`](configuration.md#hosts)) are translated into each other. A mark that the host does not allow in its place moves to the nearest place before it. What Anthropic's marks leave out is not cached at OpenAI either (\`mode: explicit\`). A host of \`messages\` gets the first mark and the latest three.
A mark's retention becomes the nearest one that the host offers and that has a [price](configuration.md#prices): \`5m\` or \`1h\` at Anthropic, \`30m\` or
\`12h\` at OpenAI. Other hosts get no marks. A request that wants no answer (\`generate: false\`, \`prompt_cache_options.prewarm\`) goes to hosts of
its own language only.

**Usage and versions.** \`usage: {include: true}\` is not sent to hosts; every answer has usage. Translated requests to \`messages\` use the version in the host's
\`headers\` (Anthropic: 2026-10-21), or 2023-06-01 if they have \`temperature\`, \`top_p\` or \`top_k\`, which the newer version refuses. A client's own
\`anthropic-version\` is kept.
`;

/** What is translated for every host in a sentence; a row for all fields of which the same becomes. */
function section(client: SurfaceName): string {
  const hosts = SURFACE_NAMES.filter((name) => name !== client);
  const fields = new Map<string, string[]>();
  for (const [field, row] of Object.entries(FIELDS[client])) {
    const fates = hosts.map((host) => fate(row[host]!));
    const cells = new Set(fates).size === 1 ? [fates[0]!, "the same"] : fates;
    fields.set(cells.join(" | "), [...(fields.get(cells.join(" | ")) ?? []), `\`${field}\``]);
  }
  const everywhere = fields.get("translated | the same") ?? [];
  fields.delete("translated | the same");
  const head = ["field", ...hosts.map((host) => `to a host of \`${host}\``)];
  const rows = [...fields].map(([cells, names]) => [names.join(", "), cells]);
  return `## From a client of \`${client}\`

Translated for both other languages: ${everywhere.join(", ")}.

${table(head, rows)}`;
}

const parts = (): string =>
  `## Parts of fields

A member that the gateway does not know inside a message, item, part, tool or setting is left out, and named with its container: \`text.mood\`,
\`tools[].color\`. Empty members (null, false) and labels of an earlier answer (\`id\`, \`status\`) are not named. \`x-gateway-omitted\` has
at most 32 names; \`text.*\` stands for more.

${table(
  ["part", "where the host's language lacks it"],
  Object.entries(NESTED).map(([part, verdict]) => [`\`${part}\``, fate(verdict)]),
)}`;

function fate(verdict: Verdict): string {
  switch (verdict.kind) {
    case "translated":
      return "translated";
    case "omit":
      return `left out: ${verdict.why}`;
    case "refuse":
      return `refused: ${verdict.why}`;
  }
}

/** A cell may hold several. */
const table = (head: readonly string[], rows: readonly (readonly string[])[]): string =>
  [head, head.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |\n`).join("");

if (import.meta.main) process.stdout.write(surfacesDocument());
