import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Glob } from "bun";
import { SURFACE_NAMES, type SurfaceName } from "../../src/catalog/catalog.ts";
import type { HostTarget } from "../../src/surfaces/surface.ts";
import { pairing, SURFACES } from "../../src/surfaces/surfaces.ts";
import { FIELDS } from "../../src/surfaces/vocabulary/fields.ts";
import { refused } from "../../src/units/errors/refusal.ts";
import { PackageTypes } from "./package-types.ts";

/**
 * Everything that the pinned packages of both vendors name on the wire, and what becomes of it here. `wire-watch.json` holds the
 * list; a newer package, or another behaviour, differs from it:
 *
 *     bun test/surfaces/wire-watch.ts --write
 *
 * Requests are judged by what happens to them on the way to hosts of the other two languages; hosts of the client's own get
 * them as they came. What becomes of an answer is whether a reader names it.
 */
type Outcome =
  /** It is translated for every host. */
  | "known"
  /** Hosts of another language are not sent it, and the client learns its name. */
  | "left out"
  /** Hosts of another language are not sent the request: the answer would mean something else. */
  | "refused"
  /** It depends on the host's language. */
  | "known, left out"
  | "known, refused"
  | "left out, refused"
  /** In an answer: a reader heeds it. */
  | "read"
  /** In an answer: it reaches clients of the host's language as it came, and a translation goes on without it. */
  | "passed"
  /** In an error: its status, or the type next to it, says whose it is. */
  | "by its status";

export type Outcomes = Record<string, Record<string, Outcome>>;

export function outcomesNow(): Outcomes {
  const chat = new PackageTypes("openai/resources/chat/completions/completions");
  const responses = new PackageTypes("openai/resources/responses/responses");
  const anthropic = new PackageTypes("@anthropic-ai/sdk/resources/messages/messages");
  const beta = new PackageTypes("@anthropic-ai/sdk/resources/beta/messages/messages");
  const errors = new PackageTypes("@anthropic-ai/sdk/resources/shared");
  const both = (...lists: string[][]) => [...new Set(lists.flat())].sort();
  const judge = (names: readonly string[], outcome: (name: string) => Outcome) =>
    Object.fromEntries(names.map((name) => [name, outcome(name)]));
  const read = (names: readonly string[], otherwise: Outcome = "passed") =>
    judge(names, (name) => (isNamed(name) ? "read" : otherwise));
  return {
    "chat: members": judge(chat.members("ChatCompletionCreateParamsBase"), ofMember("chat.completions")),
    "chat: roles": judge(chat.texts("ChatCompletionMessageParam", "role"), (role) =>
      ofBody("chat.completions", { messages: [{ ...CHAT_MESSAGE, role }] }),
    ),
    "chat: parts": judge(chat.texts("ChatCompletionContentPart", "type"), (type) =>
      ofBody("chat.completions", { messages: [{ role: "user", content: [{ ...CHAT_PART, type }] }] }),
    ),
    "chat: tools": judge(chat.texts("ChatCompletionTool", "type"), (type) =>
      ofBody("chat.completions", { tools: [{ ...TOOL, type }] }),
    ),
    "chat: finish reasons": read(chat.texts("ChatCompletion.Choice", "finish_reason")),
    "chat: members of a delta": read(chat.members("ChatCompletionChunk.Choice.Delta")),
    "responses: members": judge(responses.members("ResponseCreateParamsBase"), ofMember("responses")),
    "responses: items": judge(responses.texts("ResponseInputItem", "type"), (type) =>
      ofBody("responses", {
        input: [
          { ...ITEM, type },
          { role: "user", content: "Hi" },
        ],
      }),
    ),
    "responses: parts": judge(responses.texts("ResponseInputContent", "type"), (type) =>
      ofBody("responses", { input: [{ role: "user", content: [{ ...PART, type }] }] }),
    ),
    "responses: tools": judge(responses.texts("Tool", "type"), (type) =>
      ofBody("responses", { tools: [{ ...TOOL, type, tools: [] }] }),
    ),
    "responses: prompt_cache_options": judge(
      responses.members("ResponseCreateParams.PromptCacheOptions"),
      (name) => ofBody("responses", { prompt_cache_options: { [name]: OPTIONS[name] ?? "x" } }, AT_MARKS),
    ),
    "responses: output items": read(responses.texts("ResponseOutputItem", "type")),
    "responses: members of an answer": read(responses.members("Response")),
    "responses: events": read(responses.texts("ResponseStreamEvent", "type")),
    "responses: events of clients": read(responses.texts("ResponsesClientEvent", "type"), "refused"),
    "responses: statuses": read(responses.texts("ResponseStatus")),
    "responses: reasons to be incomplete": read(responses.texts("Response.IncompleteDetails", "reason")),
    "responses: error codes": read(responses.texts("ResponseError", "code"), "by its status"),
    "messages: members": judge(
      both(anthropic.members("MessageCreateParamsBase"), beta.members("MessageCreateParamsBase")),
      ofMember("messages"),
    ),
    "messages: blocks": judge(
      both(anthropic.texts("ContentBlockParam", "type"), beta.texts("BetaContentBlockParam", "type")),
      ofBlock,
    ),
    "messages: tools": judge(
      both(anthropic.texts("ToolUnion", "type"), beta.texts("BetaToolUnion", "type")),
      (type) => ofBody("messages", { tools: [{ ...TOOL, type }] }),
    ),
    "messages: blocks of an answer": read(
      both(anthropic.texts("ContentBlock", "type"), beta.texts("BetaContentBlock", "type")),
    ),
    "messages: events": read(beta.texts("BetaRawMessageStreamEvent", "type")),
    "messages: deltas": read(
      both(anthropic.texts("RawContentBlockDelta", "type"), beta.texts("BetaRawContentBlockDelta", "type")),
    ),
    "messages: stop reasons": read(both(anthropic.texts("StopReason"), beta.texts("BetaStopReason"))),
    "messages: members of usage": read(both(anthropic.members("Usage"), beta.members("BetaUsage"))),
    "messages: error types": read(errors.texts("ErrorType"), "by its status"),
    "messages: error codes": read(errors.texts("ErrorDetails", "error_code"), "by its status"),
  };
}

/** What differs between two lists, by group and name. */
export function differences(
  before: Outcomes,
  now: Outcomes,
): { added: string[]; gone: string[]; changed: string[] } {
  const flat = (outcomes: Outcomes) =>
    new Map(
      Object.entries(outcomes).flatMap(([group, names]) =>
        Object.entries(names).map(([name, outcome]) => [`${group}: ${name}`, outcome] as const),
      ),
    );
  const [old, current] = [flat(before), flat(now)];
  const added = [...current].filter(([name]) => !old.has(name));
  const changed = [...current].filter(([name, outcome]) => old.has(name) && old.get(name) !== outcome);
  return {
    added: added.map(([name, outcome]) => `${name} is ${outcome}`),
    gone: [...old.keys()].filter((name) => !current.has(name)),
    changed: changed.map(([name, outcome]) => `${name} is ${outcome}, and was ${old.get(name)}`),
  };
}

export const LIST = join(import.meta.dir, "wire-watch.json");

const TARGET: HostTarget = {
  model: "m",
  publicModel: "test/m",
  stream: false,
  quirks: {},
  maxOutputTokens: null,
  defaultMaxOutputTokens: 100,
};
const AT_MARKS = { ...TARGET, quirks: { cacheMarks: true } };

/** With whatever a kind of part, item or tool asks for. */
const PART = {
  text: "x",
  image_url: "data:image/png;base64,AAAA",
  file_data: "data:application/pdf;base64,AAAA",
  file: { file_data: "data:application/pdf;base64,AAAA" },
};
const CHAT_PART = {
  ...PART,
  image_url: { url: PART.image_url },
};
const ITEM = {
  role: "user",
  content: "x",
  call_id: "c",
  name: "n",
  arguments: "{}",
  input: "x",
  output: "x",
  summary: [],
  tools: [],
};
const CHAT_MESSAGE = { content: "x", tool_call_id: "c" };
const TOOL = {
  name: "n",
  input_schema: { type: "object" },
  parameters: { type: "object" },
  function: { name: "n", parameters: { type: "object" } },
  custom: { name: "n" },
};
const BLOCK = {
  text: "x",
  source: { type: "base64", media_type: "image/png", data: "AAAA" },
  title: "x",
  content: [{ type: "text", text: "x" }],
  id: "c",
  tool_use_id: "c",
  name: "n",
  input: {},
  thinking: "x",
  signature: "x",
  data: "x",
  tool: { type: "tool_definition", definition: { name: "n", input_schema: { type: "object" } } },
};
const BLOCKS: Readonly<Record<string, object>> = {
  search_result: { source: "https://example.com" },
  tool_removal: { tool: { type: "tool_reference", name: "n" } },
};
const OPTIONS: Readonly<Record<string, unknown>> = { mode: "implicit", ttl: "30m", prewarm: true };
const SMALLEST = {
  "chat.completions": { messages: [{ role: "user", content: "Hi" }] },
  responses: { input: "Hi" },
  messages: { messages: [{ role: "user", content: "Hi" }], max_tokens: 50 },
} as const;

const othersOf = (client: SurfaceName) => SURFACE_NAMES.filter((name) => name !== client);

function joined(outcomes: readonly ("known" | "left out" | "refused")[]): Outcome {
  return [...new Set(outcomes)].sort().join(", ") as Outcome;
}

/** As the table of fields has it; a field that is not in it is left out by its name. */
const ofMember =
  (client: SurfaceName) =>
  (name: string): Outcome => {
    const kinds = { translated: "known", omit: "left out", refuse: "refused" } as const;
    return joined(othersOf(client).map((host) => kinds[FIELDS[client][name]?.[host]?.kind ?? "omit"]));
  };

function ofBody(client: SurfaceName, more: object, target = TARGET): Outcome {
  const body = JSON.stringify({ model: "test/m", ...SMALLEST[client], ...more });
  const request = SURFACES[client].readRequest(Buffer.from(body));
  if (refused(request)) return "refused";
  return joined(
    othersOf(client).map((host) => {
      const encoded = pairing(client, host).hostBody(request, target);
      if (refused(encoded)) return "refused";
      return isLeftOut(encoded.omitted, more) ? "left out" : "known";
    }),
  );
}

/** Members that are there for other kinds are named with their kind; what is left out itself is named alone. */
const isLeftOut = (omitted: readonly string[], more: object): boolean =>
  omitted.some(
    (name) =>
      NAMED_ALONE.has(name) || ("prompt_cache_options" in more && name.startsWith("prompt_cache_options")),
  );

const NAMED_ALONE = new Set(["reasoning", "tool_search", "input[].own_calls", "tools[].web_search"]);

/** In whichever message it may stand. */
function ofBlock(type: string): Outcome {
  const block = { ...BLOCK, ...BLOCKS[type], type };
  const after = (message: object) => ({ messages: [{ role: "user", content: "Hi" }, message] });
  const outcomes = ["user", "assistant", "system"].map((role) =>
    ofBody("messages", { tools: [{ name: "n", input_schema: {} }], ...after({ role, content: [block] }) }),
  );
  return outcomes.find((outcome) => outcome !== "refused") ?? "refused";
}

/** Whether the code of the surfaces, or of the WebSocket's events, names it. */
const isNamed = (name: string): boolean => names.has(name);

const SOURCE = join(import.meta.dir, "../../src/surfaces");
const names = new Set(
  [...new Glob("**/*.ts").scanSync(SOURCE)]
    .flatMap((file) =>
      [...withoutComments(readFileSync(join(SOURCE, file), "utf8")).matchAll(/[\w.]+/g)].map(
        ([word]) => word!,
      ),
    )
    .flatMap((word) => [word, ...word.split(".")]),
);

function withoutComments(source: string): string {
  return source.replaceAll(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, "");
}

if (import.meta.main && process.argv.includes("--write"))
  writeFileSync(LIST, `${JSON.stringify(outcomesNow(), null, 2)}\n`);
