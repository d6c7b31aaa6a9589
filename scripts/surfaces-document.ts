import { SURFACE_NAMES, type SurfaceName } from "../src/catalog/catalog.ts";
import { FIELDS, NESTED, type Verdict } from "../src/surfaces/translation/fields.ts";

/** docs/surfaces.md from the tables that requests are judged by: `bun run document:surfaces > docs/surfaces.md`. */
export function surfacesDocument(): string {
  return [HEAD, ...SURFACE_NAMES.map(section), parts()].join("\n");
}

const HEAD = `# Languages: what is said, left out, refused

A client of any of the three languages is served by hosts of any of them. Where both speak the same one, the body passes
through as it came. Where they differ it is translated, and each field has one of three fates:

- **said**: it means the same there;
- **left out**: the answer means the same without it. The response names it in \`x-gateway-omitted\`;
- **refused**: the answer would mean something else. The request is \`invalid_request\`, with the field in \`param\`, unless
  another host of the plan can take it. A value that asks for nothing (\`n: 1\`, a penalty of 0) is left out instead.

A field that is not in a table is refused. This page is made from \`src/surfaces/translation/fields.ts\`, by which requests are judged.

| in an answer | chat.completions | responses | messages |
| --- | --- | --- | --- |
| said what it wanted | \`stop\` | \`completed\` | \`end_turn\` |
| a stop sequence | \`stop\` | \`completed\` | \`stop_sequence\` |
| calls tools | \`tool_calls\` | \`completed\` | \`tool_use\` |
| the ceiling, or the context's end | \`length\` | \`incomplete\`: \`max_output_tokens\` | \`max_tokens\` |
| a filter | \`content_filter\` | \`incomplete\`: \`content_filter\` | \`refusal\` |
| thoughts | \`reasoning_content\`, sealed in \`reasoning_details\` | \`reasoning\` item, sealed in \`encrypted_content\` | \`thinking\`, sealed in \`signature\` |
| tokens read from a cache | \`prompt_tokens_details.cached_tokens\` | \`input_tokens_details.cached_tokens\` | \`cache_read_input_tokens\` |
| tokens written to a cache | \`prompt_tokens_details.cache_write_tokens\` | \`input_tokens_details.cache_write_tokens\` | \`cache_creation_input_tokens\` |
| tokens of thoughts | \`completion_tokens_details.reasoning_tokens\` | \`output_tokens_details.reasoning_tokens\` | \`output_tokens_details.thinking_tokens\` |

A seal holds a signature or encrypted thoughts of one family (the host's language and the model's author). It goes back to
that family only; any other host gets the conversation without those thoughts. Freeform (\`custom\`) tools become functions
with one text on hosts of \`chat.completions\` and \`messages\`, and come back as freeform calls.
Tools of a client of \`messages\` with names of more than 64 characters have shorter ones at hosts of the other two languages.

A client of \`chat.completions\` that does not want to see thoughts (\`reasoning.exclude: true\`, or \`include_reasoning: false\`) gets
none in a translated answer, nor their seals; they are in its usage, and charged, all the same. A host of \`chat.completions\` is sent
both fields as they came: what it does with them is its own.

Nothing is stored: \`previous_response_id\`, \`conversation\`, \`background\`, \`store: true\`, \`thread\` and items by
reference are refused. Vercel's AI SDK refers to items unless \`providerOptions.openai.store\` is false; the tool runner of
Anthropic's SDK asks for a thread and goes on without one by itself.

A client of \`responses\` that leaves \`store\` out, as OpenAI's Agents SDK does, believes that thoughts are kept by their ids. It is
given them encrypted unasked, where it speaks of \`reasoning\` to a host of its own language, and from hosts of the others always; it
sends them back by itself. An earlier thought of which it has the id alone is left out, because the host would refuse the whole request.
`;

function section(client: SurfaceName): string {
  const hosts = SURFACE_NAMES.filter((name) => name !== client);
  const head = ["field", ...hosts.map((host) => `to a host of \`${host}\``)];
  const rows = Object.entries(FIELDS[client]).map(([field, row]) => [
    `\`${field}\``,
    ...hosts.map((host) => fate(row[host]!)),
  ]);
  return `## From a client of \`${client}\`\n\n${table(head, rows)}`;
}

const parts = (): string =>
  `## Parts of fields

A member that the gateway does not know inside a message, an item, a part, a tool or a setting (\`reasoning\`, \`tool_choice\`,
\`response_format\` and the like) is left out too and named by what it stands in: \`text.mood\`, \`tools[].color\`,
\`reasoning.pace\`. One that says nothing (null, false, empty) is not named, nor are the labels of an answer that is sent back
(\`id\`, \`status\`). At most 32 names are told; \`text.*\` stands for more.

${table(
  ["part", "where the host's language lacks it"],
  Object.entries(NESTED).map(([part, verdict]) => [`\`${part}\``, fate(verdict)]),
)}`;

function fate(verdict: Verdict): string {
  switch (verdict.kind) {
    case "said":
      return "said";
    case "omit":
      return `left out: ${verdict.why}`;
    case "refuse":
      return `refused: ${verdict.why}`;
  }
}

const table = (head: readonly string[], rows: readonly (readonly string[])[]): string =>
  [head, head.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |\n`).join("");

if (import.meta.main) process.stdout.write(surfacesDocument());
