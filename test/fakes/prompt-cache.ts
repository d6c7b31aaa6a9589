import type { Clock } from "../../src/units/clock.ts";
import { json, sse, status } from "./behaviours.ts";
import type { Script } from "./host.ts";
import { messagesText } from "./transcripts.ts";

/**
 * A host's prompt cache as Anthropic describes it ("Prompt caching"): prefixes are written at marked blocks, of which
 * there may be four, and found at or up to 20 blocks before a marked one. Tools come before the instructions, those
 * before the messages. What is found lives on; what nobody asks for in five minutes (or the hour that its mark says) is gone.
 */
export class PromptCache {
  private readonly kept: KeptPrefixes;

  constructor(
    clock: Pick<Clock, "elapsedMs">,
    private readonly leastTokens = 1_024,
  ) {
    this.kept = new KeptPrefixes(clock);
  }

  /** What a prompt reads and writes; a text says why the host refuses it. */
  take(request: Request): CacheUse | string {
    const blocks = blocksOf(request);
    const marks = blocks.flatMap(({ mark }, at) => (mark === undefined ? [] : [at]));
    if (marks.length > 4)
      return `A maximum of 4 blocks with cache_control may be provided. Found ${marks.length}.`;
    const wrong = marks.find((at) => !mayBeMarked(blocks[at]!.block));
    if (wrong !== undefined)
      return `cache_control cannot be set for this block: ${JSON.stringify(blocks[wrong])}`;
    const prefixes = prefixesOf(blocks.map(({ content }) => content));
    const found = this.kept.find(marks.toReversed().flatMap(checkedAt), prefixes);
    const read = found === -1 ? 0 : prefixes[found]!.tokens;
    let cached = read;
    for (const at of marks) {
      const { key, tokens } = prefixes[at]!;
      if (at > found && tokens >= this.leastTokens) cached = tokens;
      if (at <= found || tokens < this.leastTokens) continue;
      this.kept.keep(key, blocks[at]!.mark!.ttl === "1h" ? 3_600_000 : 300_000);
    }
    return { read, written: cached - read, rest: (prefixes.at(-1)?.tokens ?? 0) - cached };
  }
}

/** The places that a mark finds a prefix at: its own, and those before it. */
const checkedAt = (mark: number): number[] =>
  Array.from({ length: Math.min(mark + 1, MAX_BLOCKS_BACK) }, (_, back) => mark - back);

/** The prefixes that a host remembers, each for its time after it was written or last found. */
export class KeptPrefixes {
  private readonly prefixes = new Map<string, Kept>();

  constructor(private readonly clock: Pick<Clock, "elapsedMs">) {}

  keep(key: string, keptMs: number): void {
    this.prefixes.set(key, { keptMs, untilMs: this.clock.elapsedMs() + keptMs });
  }

  /** The first of these places whose prefix is remembered; -1 where none is. */
  find(offsets: readonly number[], prefixes: readonly Prefix[]): number {
    for (const at of offsets) {
      const { key } = prefixes[at]!;
      const kept = this.prefixes.get(key);
      if (kept === undefined || kept.untilMs < this.clock.elapsedMs()) continue;
      this.keep(key, kept.keptMs);
      return at;
    }
    return -1;
  }
}

/** By the texts of a prompt's blocks, up to the end of each; and by settings that have to be the same. */
export function prefixesOf(texts: readonly string[], settings = ""): Prefix[] {
  let key = settings;
  let tokens = 0;
  return texts.map((text) => {
    key = Bun.hash(`${key} ${text}`).toString(36);
    tokens += Math.ceil(text.length / 4);
    return { key, tokens };
  });
}

/** A host of Messages with such a cache, which answers `Fine.` */
export function cachingHost(cache: PromptCache, uses: CacheUse[]): Script {
  return (request) => {
    const body = request.json();
    const use = cache.take(body);
    if (typeof use === "string") return status(400, {}, use);
    uses.push(use);
    const input = use.rest + use.read + use.written;
    const answer = messagesText(["Fine."], { input, cached: use.read, cacheWrite: use.written });
    return body.stream === true ? sse(answer.events) : json(answer.whole);
  };
}

export interface CacheUse {
  readonly read: number;
  readonly written: number;
  readonly rest: number;
}

interface Kept {
  readonly keptMs: number;
  readonly untilMs: number;
}

interface Prefix {
  readonly key: string;
  readonly tokens: number;
}

interface Block {
  readonly block: Readonly<Record<string, unknown>>;
  readonly mark: { readonly ttl?: string } | undefined;
  readonly content: string;
}

// biome-ignore lint/suspicious/noExplicitAny: whatever a client sends.
type Request = any;

function blocksOf({ tools = [], system, messages }: Request): Block[] {
  const of = (content: unknown, role: string): Block[] =>
    (typeof content === "string" ? [{ type: "text", text: content }] : ((content ?? []) as Request[])).map(
      (block) => blockOf(block, role),
    );
  return [
    ...tools.map((tool: Request) => blockOf(tool, "tool")),
    ...of(system, "system"),
    ...messages.flatMap(({ role, content }: Request) => of(content, role)),
  ];
}

function blockOf(marked: Request, role: string): Block {
  const { cache_control: mark, ...block } = marked;
  return { block, mark, content: `${role} ${JSON.stringify(block)}` };
}

const mayBeMarked = ({ type, text, defer_loading }: Block["block"]): boolean =>
  type !== "thinking" && type !== "redacted_thinking" && text !== "" && defer_loading !== true;

const MAX_BLOCKS_BACK = 20;
