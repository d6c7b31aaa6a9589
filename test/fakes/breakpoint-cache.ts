import type { Clock } from "../../src/units/clock.ts";
import { type CacheUse, KeptPrefixes, prefixesOf } from "./prompt-cache.ts";

/**
 * A host's prompt cache as OpenAI describes it for GPT-5.6 and later ("Prompt caching"; `prompt_cache_options` and
 * `prompt_cache_breakpoint` of its package's types). A prefix is found exactly where it was written, and only at
 * breakpoints of the request: the explicit ones (the first 2 and the latest 50), and, unless `mode` is `explicit`, the end of
 * the newest eligible message and of up to 20 before it. Written are the latest four explicit ones, or the latest three and the
 * newest message. Eligible are the instructions at the beginning, what the user says, and rows of tool results. Prefixes below
 * 1,024 tokens are not kept; what is found lives on for its time.
 */
export class BreakpointCache {
  private readonly kept: KeptPrefixes;

  constructor(
    clock: Pick<Clock, "elapsedMs">,
    private readonly leastTokens = 1_024,
  ) {
    this.kept = new KeptPrefixes(clock);
  }

  /** What a prompt of Responses or chat reads and writes; a text says why the host refuses it. */
  take(request: Request): CacheUse | string {
    const { mode = "implicit", ttl = "30m" } = request.prompt_cache_options ?? {};
    const blocks = blocksOf(request);
    const unknown = blocks.find(({ block }) => block.cache_control !== undefined);
    if (unknown !== undefined)
      return `Unknown parameter: 'cache_control' in ${JSON.stringify(unknown.block)}.`;
    const wrong = blocks.find(({ point, isMarkable }) => point !== undefined && !isMarkable);
    if (wrong !== undefined)
      return `Unknown parameter: 'prompt_cache_breakpoint' in ${JSON.stringify(wrong)}.`;
    const texts = blocks.map(({ block }) => JSON.stringify(block));
    const prefixes = prefixesOf(texts, settingsOf(request));
    const explicit = blocks.flatMap(({ point }, at) => (point === undefined ? [] : [at]));
    const ends = mode === "explicit" ? [] : messageEnds(blocks);
    const candidates = [...explicit.slice(0, 2), ...explicit.slice(-50), ...ends.slice(-21)];
    const found = this.kept.find(
      [...new Set(candidates)].sort((one, other) => other - one),
      prefixes,
    );
    const read = found === -1 ? 0 : prefixes[found]!.tokens;
    const written = [...explicit.slice(mode === "explicit" ? -4 : -3), ...ends.slice(-1)];
    let cached = read;
    for (const at of written) {
      const { key, tokens } = prefixes[at]!;
      if (tokens < this.leastTokens || at <= found) continue;
      cached = Math.max(cached, tokens);
      this.kept.keep(key, KEPT_MS[(blocks[at]!.point?.ttl ?? ttl) as keyof typeof KEPT_MS]);
    }
    return { read, written: cached - read, rest: (prefixes.at(-1)?.tokens ?? 0) - cached };
  }
}

const KEPT_MS = { "30m": 30 * 60_000, "12h": 12 * 3_600_000 };

interface Block {
  readonly block: Readonly<Record<string, unknown>>;
  readonly point: { readonly ttl?: string } | undefined;
  readonly isMarkable: boolean;
  /** Blocks of one message, or of a row of results, have the same number; null where no end is eligible. */
  readonly message: number | null;
}

// biome-ignore lint/suspicious/noExplicitAny: whatever a client sends.
type Request = any;

/** What has to be the same for a prefix to match, besides what stands before it. */
const settingsOf = ({
  model,
  parallel_tool_calls,
  text,
  reasoning,
  response_format,
  reasoning_effort,
}: Request) =>
  JSON.stringify([model, parallel_tool_calls, text, reasoning?.effort, response_format, reasoning_effort]);

function blocksOf({ tools = [], instructions, input, messages }: Request): Block[] {
  const items: Request[] =
    messages ?? (typeof input === "string" ? [{ role: "user", content: input }] : input);
  const blocks: Block[] = tools.map((tool: Request) => blockOf(tool, false, null));
  if (instructions) blocks.push(blockOf({ role: "developer", text: instructions }, false, 0));
  let message = 0;
  let before = instructions ? "instructions" : "";
  let isOpening = true;
  for (const item of items) {
    const kind = kindOf(item);
    isOpening &&= kind === "instructions";
    if (kind !== before || kind === "user") message += 1;
    before = kind;
    const isEligible = kind === "user" || kind === "result" || isOpening;
    const content = item.output ?? item.content ?? item;
    const { output: _output, content: _content, ...head } = item;
    const parts: Request[] = Array.isArray(content) ? content : [content];
    for (const [at, part] of parts.entries()) {
      const block = typeof part === "object" && part !== null ? part : { text: part };
      const named = at === 0 && content !== item ? { ...block, head } : block;
      blocks.push(blockOf(named, kind !== "answer" && part !== item, isEligible ? message : null));
    }
  }
  return blocks;
}

function kindOf({ type, role }: Request): "instructions" | "user" | "result" | "answer" {
  if (role === "system" || role === "developer") return "instructions";
  if (role === "user") return "user";
  return role === "tool" || /_call_output$/.test(type ?? "") ? "result" : "answer";
}

function blockOf(marked: Request, isMarkable: boolean, message: number | null): Block {
  const { prompt_cache_breakpoint: point, ...block } = marked;
  return { block, point, isMarkable: isMarkable && block.text !== "", message };
}

/** The last block of each message that the host may mark by itself. */
const messageEnds = (blocks: readonly Block[]): number[] =>
  blocks.flatMap(({ message }, at) => (message !== null && blocks[at + 1]?.message !== message ? [at] : []));
