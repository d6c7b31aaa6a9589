import { SURFACE_NAMES, type SurfaceName } from "../src/catalog/catalog.ts";
import { FIELDS, NESTED, type Verdict } from "../src/surfaces/vocabulary/fields.ts";

/** docs/surfaces.md from the tables that requests are judged by: `bun run document:surfaces > docs/surfaces.md`. */
export function surfacesDocument(): string {
  return [HEAD, ...SURFACE_NAMES.map(section), parts()].join("\n");
}

const HEAD = `# Languages: what is translated, left out, refused

A client of any of the three languages can be served by a host of any of them. When both speak the same language, the body
passes through as it came, except for what the host is known to refuse ([quirks](configuration.md#hosts)), and a ceiling
above the model's: that is lowered to it, and \`thinking.budget_tokens\`, or OpenRouter's \`reasoning.max_tokens\`, to at
most four fifths of it. When they differ it is translated, and each field is treated in one of three ways:

- **translated**: the host is told the same in its own language;
- **left out**: the answer means the same without it. The response names it in \`x-gateway-omitted\`;
- **refused**: the answer would mean something else. The request is an \`invalid_request\` with the field in \`param\`, unless
  another host of the plan can take it. A value that asks for nothing (\`n: 1\`, a penalty of 0) is left out instead.

A field that this page does not name is left out. This page is generated from \`src/surfaces/vocabulary/fields.ts\`, the tables that
requests are checked against.

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

A filter that ends an answer before any of it is a refusal, after which another model may [serve](routing.md#refusals). Thoughts
are a part of the answer, shown or not; a \`messages\` client reads in \`usage.iterations\` which models declined and which served.

A seal holds a signature or encrypted reasoning of one family (the host's language plus the model's author). It is returned to
that family only; any other host gets the conversation without that reasoning. Freeform (\`custom\`) tools become functions
with one text argument on hosts of \`chat.completions\` and \`messages\`, and come back as freeform calls. Tools of a
\`messages\` client with names of more than 64 characters get shorter names at hosts of the other two languages.

A \`chat.completions\` client that does not want to see reasoning (\`reasoning.exclude: true\`, or \`include_reasoning: false\`)
gets neither reasoning nor its seals in a translated answer; the tokens are still in its usage, and charged. A host of
\`chat.completions\` is sent both fields as they came, and decides for itself. OpenAI's, which refuses them, gets the effort alone.
OpenRouter's clients ask for usage by \`usage: {include: true}\`: hosts are not sent it, and the answer has usage, streamed or not.

Pages that a host cites (\`url_citation\`) are told to clients of OpenAI's two languages; \`messages\` has another kind of
citations, and its clients get the text alone. Lists of texts and thoughts, as Mistral's chat answers, reach chat clients as
one text with \`reasoning_content\`.

Hosts of \`responses\` have no stop sequences: the gateway looks for them, and tells the answer to where the first begins. The
host writes on to its end, and what it wrote is charged.

Hosts of \`messages\` want a message to answer. A request of nothing but instructions is sent to them as the user's turn.

Nothing is stored: \`previous_response_id\`, \`conversation\`, \`background\`, \`store: true\`, \`thread\` and items by
reference are refused; over a WebSocket, \`previous_response_id\` names what its connection remembers
([clients](clients.md#responses-over-websocket)). Vercel's AI SDK refers to items unless \`providerOptions.openai.store\` is false. The tool runner of
Anthropic's SDK asks for a thread, and continues by itself without one.

What Codex puts into \`input\` works on hosts of any language. Tools of an item \`additional_tools\` are offered like those in
\`tools\`. \`compaction_trigger\` as the last item asks hosts of other languages for a summary in words, which is answered as an
item \`compaction\`: opaque to the client like OpenAI's, and told to the next host, of whatever language, as what it says. An
item that OpenAI encrypted can go back to hosts of \`responses\` only. \`POST /v1/responses/compact\` asks for the same, whole.

Marks for a prompt cache are translated: Anthropic's \`cache_control\`, and OpenAI's \`prompt_cache_breakpoint\` with
\`prompt_cache_options\`, which models from GPT-5.6 on know ([\`quirks.cache_marks\`](configuration.md#hosts)). A mark that the
host's language does not take at its place moves to the nearest one before it, that of a tool to the end of the instructions. What
Anthropic's marks leave out is not cached at OpenAI either (\`mode: explicit\`), and the ends of earlier messages are marked too,
because OpenAI finds only what is marked. A host of \`messages\` gets the first mark and the latest three. Each
mark is kept for the nearest time that the host knows and that has a [price](configuration.md#prices) there: \`5m\` or \`1h\` at Anthropic, \`30m\` or
\`12h\` at OpenAI. Other hosts are sent no marks.

Tools that a \`messages\` client adds or removes in the middle of its conversation (\`tool_addition\`, \`tool_removal\`) are
offered to hosts of other languages as they stand at its end; instructions with \`clear_at: next_user_message\` are not sent after
that message. A request that asks for no answer (\`generate: false\`, \`prompt_cache_options.prewarm\`) goes to hosts of its own
language only, and is charged what the host reports.

Requests that are translated for \`messages\` are sent as of the version in the host's \`headers\` (for Anthropic 2026-10-21), or
as of 2023-06-01 where they have a \`temperature\`, \`top_p\` or \`top_k\`, which the newer version refuses. A client's own
\`anthropic-version\` is kept.

A \`responses\` client that leaves \`store\` out, as OpenAI's Agents SDK does, expects reasoning to be kept under its ids. So it
is given encrypted reasoning unasked: by a host of its own language if it sends \`reasoning\`, and by hosts of the other
languages always. It sends that back by itself. An earlier reasoning item of which it has only the id is left out, because the
host would refuse the whole request.
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

A member that the gateway does not read inside a message, an item, a part, a tool or a setting (\`reasoning\`, \`tool_choice\`,
\`response_format\` and the like) is left out too, and named together with what contains it: \`text.mood\`, \`tools[].color\`,
\`reasoning.pace\`. Members without a value (null, false, empty) are not named, nor are the labels of an answer that is sent back
(\`id\`, \`status\`). At most 32 names are given; \`text.*\` stands for more.

${table(
  ["part", "where the host's language lacks it"],
  Object.entries(NESTED).map(([part, verdict]) => [`\`${part}\``, fate(verdict)]),
)}`;

function fate(verdict: Verdict): string {
  switch (verdict.kind) {
    case "said":
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
