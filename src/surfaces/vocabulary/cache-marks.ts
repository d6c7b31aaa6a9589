import type { SurfaceName } from "../../catalog/catalog.ts";
import { ratesAt, writeRate } from "../../catalog/price.ts";
import type { Json } from "../json/json.ts";
import type { HostTarget } from "../surface.ts";
import type { CacheMark, Conversation, MarkRetention, Turn } from "./conversation.ts";
import type { TranslationReport } from "./translation-report.ts";

/**
 * Marks for a host's prompt cache, between the rules of two vendors. A mark ends a prefix that the host is to keep.
 *
 * Anthropic's `cache_control` stands on tools, texts, images, documents, calls and results. There may be four, nothing
 * else is cached, and each also finds what was kept up to 20 blocks before it. OpenAI's `prompt_cache_breakpoint`, from
 * GPT-5.6 on, stands on instructions, the user's words and the output of tools. A prefix is found exactly at a mark, the
 * last four are written, and the host adds one at the end of the newest message unless `mode` is `explicit` (both
 * vendors' "Prompt caching").
 *
 * So a mark moves to the nearest position that carries one, and on OpenAI's hosts Anthropic's marks get more before them, at
 * the end of each message: there the host finds what earlier turns have written. A mark costs nothing itself, because each
 * token is written once.
 */
export function adaptMarks(conversation: Conversation, report: TranslationReport): Conversation {
  const first = someMark(conversation, () => true);
  if (first === null) return conversation;
  const style = markStyle(report.host, report.target);
  const positions = positionsOf(conversation);
  const marks = movedMarks(positions, report);
  if (marks.size === 0) report.omit(MARK_NAMES[first]);
  if (style === "cache_control") fitControls(marks, positions, conversation, report);
  else if (style === "breakpoint") fitBreakpoints(marks, positions, conversation);
  const nearest = positions.map((_, at): CacheMark => nearestRetention(marks.get(at) ?? null, report));
  if (style === "cache_control") lengthenEarlier(nearest);
  let at = 0;
  const placed = mapPositions(conversation, () => nearest[at++]!);
  if (marks.size === 0 || !cachesOnlyMarks(conversation)) return placed;
  return { ...placed, cacheOptions: { retention: null, ...conversation.cacheOptions, mode: "explicit" } };
}

/** How a host spells marks; null where it takes none. */
export function markStyle(host: SurfaceName, { quirks }: HostTarget): "cache_control" | "breakpoint" | null {
  if (host === "messages" || (host === "chat.completions" && quirks.cacheControl === true))
    return "cache_control";
  return quirks.cacheMarks === true ? "breakpoint" : null;
}

/** The member of a part, as a host takes it. */
export function markMember(mark: CacheMark, report: TranslationReport): Json {
  if (mark === null) return {};
  const { host, target, cacheOptions } = report;
  if (markStyle(host, target) === "cache_control") return { cache_control: cacheControl(mark) };
  // One that says nothing is kept for as long as the whole request says.
  const isDefault = mark !== "12h" && nearestRetention(cacheOptions?.retention ?? null, report) !== "12h";
  return { prompt_cache_breakpoint: { mode: "explicit", ...(isDefault ? {} : { ttl: mark }) } };
}

/** Anthropic's mark on the whole request. Hosts that match at marks cache the newest message without it. */
export function writeWholeMark(mark: CacheMark, report: TranslationReport): Json | undefined {
  if (mark === null) return undefined;
  const style = markStyle(report.host, report.target);
  if (style === null) report.omit("cache_control");
  return style === "cache_control" ? cacheControl(nearestRetention(mark, report)) : undefined;
}

export const cacheControl = (mark: MarkRetention): Json =>
  mark === "1h" ? { type: "ephemeral", ttl: mark } : { type: "ephemeral" };

/** `prompt_cache_options` for a host of OpenAI's languages; undefined where its defaults are meant. */
export function writeCacheOptions(conversation: Conversation, report: TranslationReport): Json | undefined {
  const { cache, cacheOptions } = conversation;
  if (markStyle(report.host, report.target) !== "breakpoint") {
    if (report.cacheOptions !== null) report.omit("prompt_cache_options");
    return undefined;
  }
  const mode = cacheOptions?.mode ?? null;
  const retention = nearestRetention(cacheOptions?.retention ?? cache, report);
  const options = {
    ...(mode === null ? {} : { mode }),
    ...(retention === "12h" ? { ttl: retention } : {}),
  };
  return Object.keys(options).length > 0 ? options : undefined;
}

/** Whether the client wants nothing else to be cached: it says so, or its marks are Anthropic's, which mean that. */
function cachesOnlyMarks(conversation: Conversation): boolean {
  const { cache, cacheOptions } = conversation;
  if (cacheOptions?.mode != null) return cacheOptions.mode === "explicit";
  return cache === null && someMark(conversation, isAnthropics) !== null;
}

/** The first mark of a kind; null where there is none. */
function someMark(
  { tools, turns }: Conversation,
  isMeant: (mark: MarkRetention) => boolean,
): MarkRetention | null {
  const isOne = (of: object) => "cache" in of && of.cache !== null && isMeant(of.cache as MarkRetention);
  const found =
    tools.find(isOne) ??
    turns.find((turn) => isOne(turn)) ??
    turns.find(({ parts }) => parts.some(isOne))?.parts.find(isOne);
  return found === undefined ? null : (found as { cache: MarkRetention }).cache;
}

const isAnthropics = (mark: CacheMark): boolean => mark === "5m" || mark === "1h";

/**
 * What the host knows, and has a price for, that is nearest to what the client wishes; the shorter of two that are as near.
 * Where none has a price, the host's default.
 */
export function nearestRetention<Mark extends CacheMark>(
  requested: Mark,
  { host, target }: TranslationReport,
): Mark {
  if (requested === null) return requested;
  const known = KNOWN_RETENTIONS[markStyle(host, target) === "cache_control" ? "messages" : host];
  const rates = target.price === undefined ? null : ratesAt(target.price, 0);
  const isSold = (one: MarkRetention) => (rates === null ? one !== "12h" : writeRate(rates, one) !== null);
  const distance = (one: MarkRetention) => Math.abs(MINUTES[one] - MINUTES[requested]);
  return known.reduce((best, one) => (isSold(one) && distance(one) < distance(best) ? one : best)) as Mark;
}

/** From the shortest to the longest. */
const KNOWN_RETENTIONS: Readonly<Record<SurfaceName, readonly [MarkRetention, ...MarkRetention[]]>> = {
  messages: ["5m", "1h"],
  responses: ["30m", "12h"],
  "chat.completions": ["30m", "12h"],
};

const MINUTES: Readonly<Record<MarkRetention, number>> = { "5m": 5, "30m": 30, "1h": 60, "12h": 720 };

/** By the retention, which only one of the vendors has. */
const MARK_NAMES = {
  "5m": "cache_control",
  "1h": "cache_control",
  "30m": "prompt_cache_breakpoint",
  "12h": "prompt_cache_breakpoint",
} as const satisfies Record<MarkRetention, string>;

/** Where a mark may stand, in the order of the prompt. */
interface MarkPosition {
  readonly mark: CacheMark;
  /** `prompt`: what the instructions, the user or a tool say; `nothing`: what no host lets anybody mark. */
  readonly kind: "tool" | "prompt" | "result" | "text" | "call" | "nothing";
  /** Its number among the turns; -1 for tools. */
  readonly turn: number;
  readonly role: Turn["role"] | null;
}

function positionsOf(conversation: Conversation): MarkPosition[] {
  const positions: MarkPosition[] = [];
  mapPositions(conversation, (position) => {
    positions.push(position);
    return position.mark;
  });
  return positions;
}

/** The conversation with a mark, or none, for each position, which are visited in the order of the prompt. */
function mapPositions(
  conversation: Conversation,
  markAt: (position: MarkPosition) => CacheMark,
): Conversation {
  const tools = conversation.tools.map((tool) =>
    tool.kind === "custom"
      ? tool
      : { ...tool, cache: markAt({ mark: tool.cache, kind: "tool", turn: -1, role: null }) },
  );
  const turns = conversation.turns.map((turn, number) => {
    const { role } = turn;
    const parts = (turn.parts as readonly MarkedPart[]).map((part) => {
      if (!("cache" in part)) return part;
      return { ...part, cache: markAt({ mark: part.cache, kind: kindOf(part, role), turn: number, role }) };
    });
    const marked = { ...turn, parts } as Turn;
    if (marked.role !== "tool") return marked;
    return { ...marked, cache: markAt({ mark: marked.cache, kind: "result", turn: number, role }) };
  });
  return { ...conversation, tools, turns };
}

type MarkedPart = Turn["parts"][number];

function kindOf(part: MarkedPart, role: Turn["role"]): MarkPosition["kind"] {
  if (part.kind === "tool_call") return "call";
  // Neither vendor lets an empty text be marked, and some writers leave it out.
  if (part.kind === "text" && part.text === "") return "nothing";
  return role === "assistant" ? "text" : "prompt";
}

function carries({ kind, role }: MarkPosition, { host, target }: TranslationReport): boolean {
  if (host === "messages") return kind !== "nothing" && !(kind === "prompt" && role === "tool");
  const style = markStyle(host, target);
  return style !== null && (kind === "prompt" || (kind === "text" && style === "cache_control"));
}

/**
 * The client's marks by the numbers of their positions. One that the host cannot take there goes to the result that contains
 * it, or to the position before it; that of a tool goes behind the instructions that follow.
 */
function movedMarks(
  positions: readonly MarkPosition[],
  report: TranslationReport,
): Map<number, MarkRetention> {
  const marks = new Map<number, MarkRetention>();
  const move = (to: number, mark: MarkRetention) => {
    if (to !== -1 && !marks.has(to)) marks.set(to, mark);
  };
  const instructions = endOfInstructions(positions, report);
  let before = -1;
  let inResult: CacheMark = null;
  for (const [at, position] of positions.entries()) {
    const { mark, kind, role } = position;
    const isCarried = carries(position, report);
    if (mark !== null) {
      if (isCarried) marks.set(at, mark);
      else if (kind === "tool") move(instructions, mark);
      else if (role === "tool" && report.host === "messages") inResult = mark;
      else move(before, mark);
    }
    if (kind === "result") {
      if (inResult !== null) move(at, inResult);
      inResult = null;
    }
    if (isCarried) before = at;
  }
  return marks;
}

/** The last position of the instructions with which the conversation begins; -1 where it has none. */
function endOfInstructions(positions: readonly MarkPosition[], report: TranslationReport): number {
  const firstMessage = positions.findIndex(
    ({ kind, role }) => kind !== "tool" && role !== "system" && role !== "developer",
  );
  return lastCarrier(firstMessage === -1 ? positions.length : firstMessage, positions, report);
}

/** The last position before a number that carries a mark; -1 where none does. */
const lastCarrier = (before: number, positions: readonly MarkPosition[], report: TranslationReport): number =>
  positions.findLastIndex((position, at) => at < before && carries(position, report));

/**
 * At most four, of which the first stays, because other conversations share what it ends, and the last ones, because
 * the next turn continues them. OpenAI's clients also expect the newest message to be cached.
 */
function fitControls(
  marks: Map<number, MarkRetention>,
  positions: readonly MarkPosition[],
  conversation: Conversation,
  report: TranslationReport,
): void {
  const isTailMarked = marks.size > 0 && !cachesOnlyMarks(conversation) && conversation.cache === null;
  const tail = lastCarrier(positions.length, positions, report);
  if (isTailMarked && !marks.has(tail)) marks.set(tail, conversation.cacheOptions?.retention ?? "30m");
  const most = conversation.cache === null ? MAX_CONTROLS : MAX_CONTROLS - 1;
  if (marks.size > most) report.omit(MARK_NAMES[[...marks.values()][0]!]);
  keepEnds(marks, 1, most);
}

/** With the ends of the messages before them, where Anthropic's host would find by itself what was kept there. */
function fitBreakpoints(
  marks: Map<number, MarkRetention>,
  positions: readonly MarkPosition[],
  conversation: Conversation,
): void {
  let last = -1;
  for (const at of marks.keys()) last = Math.max(last, at);
  if (someMark(conversation, isAnthropics) !== null && cachesOnlyMarks(conversation))
    for (const at of messageEnds(positions, conversation.turns))
      if (at < last && !marks.has(at)) marks.set(at, marks.get(last)!);
  keepEnds(marks, MAX_FIRST_BREAKPOINTS, MAX_BREAKPOINTS);
}

/** Where OpenAI's host may have put its own mark: behind instructions, a message of the user, a row of results. */
function messageEnds(positions: readonly MarkPosition[], turns: readonly Turn[]): Iterable<number> {
  const ends = new Map<number, number>();
  let message = 0;
  const messages = turns.map(({ role }, at) =>
    role === turns[at - 1]?.role && role !== "user" ? message : ++message,
  );
  for (const [at, { kind, turn }] of positions.entries())
    if (kind === "prompt") ends.set(messages[turn]!, at);
  return ends.values();
}

/** Removes marks from the middle until no more than `most` are left. */
function keepEnds(marks: Map<number, MarkRetention>, first: number, most: number): void {
  const ordered = [...marks.keys()].sort((one, other) => one - other);
  for (const at of ordered.slice(first, Math.max(first, ordered.length - (most - first)))) marks.delete(at);
}

/** Anthropic: “A maximum of 4 blocks with cache_control may be provided.” One on the whole counts too. */
const MAX_CONTROLS = 4;
/** OpenAI looks at the first two and the latest fifty ("Prompt caching"). */
const MAX_FIRST_BREAKPOINTS = 2;
const MAX_BREAKPOINTS = 50;

/** Anthropic refuses a longer retention behind a shorter one. */
function lengthenEarlier(marks: CacheMark[]): void {
  let longest: MarkRetention = "5m";
  for (let at = marks.length - 1; at >= 0; at--) {
    const mark = marks[at]!;
    if (mark === null) continue;
    if (MINUTES[mark] > MINUTES[longest]) longest = mark;
    marks[at] = longest;
  }
}
