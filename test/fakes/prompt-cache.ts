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
  private readonly prefixes = new Map<string, Kept>();

  constructor(
    private readonly clock: Pick<Clock, "elapsedMs">,
    private readonly leastTokens = 1_024,
  ) {}

  /** What a prompt reads and writes; a text says why the host refuses it. */
  take(request: Request): CacheUse | string {
    const blocks = blocksOf(request);
    const marks = blocks.flatMap(({ mark }, at) => (mark === undefined ? [] : [at]));
    if (marks.length > 4)
      return `A maximum of 4 blocks with cache_control may be provided. Found ${marks.length}.`;
    const wrong = marks.find((at) => !mayBeMarked(blocks[at]!.block));
    if (wrong !== undefined)
      return `cache_control cannot be set for this block: ${JSON.stringify(blocks[wrong])}`;
    const prefixes = prefixesOf(blocks);
    const found = this.find(marks, prefixes);
    const read = found === -1 ? 0 : prefixes[found]!.tokens;
    let cached = read;
    for (const at of marks) {
      const { key, tokens } = prefixes[at]!;
      if (at > found && tokens >= this.leastTokens) cached = tokens;
      if (at <= found || tokens < this.leastTokens) continue;
      const keptMs = blocks[at]!.mark!.ttl === "1h" ? 3_600_000 : 300_000;
      this.prefixes.set(key, { keptMs, untilMs: this.clock.elapsedMs() + keptMs });
    }
    return { read, written: cached - read, rest: (prefixes.at(-1)?.tokens ?? 0) - cached };
  }

  private find(marks: readonly number[], prefixes: readonly Prefix[]): number {
    const nowMs = this.clock.elapsedMs();
    for (const mark of marks.toReversed())
      for (let at = mark; at >= 0 && at > mark - LOOKED_BACK; at--) {
        const kept = this.prefixes.get(prefixes[at]!.key);
        if (kept === undefined || kept.untilMs < nowMs) continue;
        this.prefixes.set(prefixes[at]!.key, { ...kept, untilMs: nowMs + kept.keptMs });
        return at;
      }
    return -1;
  }
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
  readonly said: string;
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
  return { block, mark, said: `${role} ${JSON.stringify(block)}` };
}

const mayBeMarked = ({ type, text, defer_loading }: Block["block"]): boolean =>
  type !== "thinking" && type !== "redacted_thinking" && text !== "" && defer_loading !== true;

function prefixesOf(blocks: readonly Block[]): Prefix[] {
  let key = "";
  let tokens = 0;
  return blocks.map(({ said }) => {
    key = Bun.hash(`${key} ${said}`).toString(36);
    tokens += Math.ceil(said.length / 4);
    return { key, tokens };
  });
}

const LOOKED_BACK = 20;
