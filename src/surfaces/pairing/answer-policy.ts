import type { SurfaceName } from "../../catalog/catalog.ts";
import { ALONE } from "../../tokens/answer-text.ts";
import { MAX_PARTS, TooManyParts } from "../events/answer-bounds.ts";
import { AnswerFacts } from "../events/event-judge.ts";
import { asObject } from "../json/json.ts";
import { asksForSummary } from "../responses/compaction.ts";
import type { GenerationRequest, Usage } from "../surface.ts";
import type { AnswerEvents, Citation, OpenBlock, StopReason } from "../vocabulary/answer-events.ts";
import type { AnswerWriter } from "../vocabulary/answer-writer.ts";
import type { Seal } from "../vocabulary/conversation.ts";
import { StopCutter, stopSequences } from "../vocabulary/stop-cutter.ts";
import { longNames, namedTools, offeredTools, unwrappedInput } from "../vocabulary/tools.ts";

/**
 * Counts what a host writes, and passes on what this client gets of it. What is withheld is counted too, because the
 * host bills it. Four rules change an answer, each only where the request calls for it:
 *
 * - Calls carry the names and the form of the tools that the client offered.
 * - Text ends at a stop sequence that the host's language does not have.
 * - Reasoning that the client asked to hide is left out.
 * - A summary of a conversation is its text alone, as one block.
 */
export class AnswerPolicy implements AnswerEvents {
  private started = false;
  private blocks = 0;
  /** A function was called, and the host has sent none of its arguments. */
  private lacksArguments = false;
  /** Calls since `startEvent`. */
  private calls = 0;
  private lastDelta: string | null = null;

  private readonly toolNames: ReadonlyMap<string, string>;
  private readonly freeformTools: ReadonlySet<string>;
  private readonly hidesReasoning: boolean;
  private readonly isSummary: boolean;
  private readonly cutter: StopCutter | null;
  private kind: OpenBlock["kind"] = "text";
  /** The client gets nothing of the open block. */
  private isWithheld = false;
  /** The open block is a call of a freeform tool, whose text is known once all of its arguments are here. */
  private freeformCall: { readonly block: OpenBlock; arguments: string } | null = null;
  private hasSummary = false;
  private withheldDeltas = 0;

  constructor(
    private readonly writer: AnswerWriter,
    request: Pick<GenerationRequest, "surface" | "json">,
    host: { readonly name: SurfaceName; readonly wrapsCustomTools: boolean },
    private readonly facts = new AnswerFacts(),
  ) {
    const { surface, json } = request;
    this.toolNames = surface === "messages" ? longNames(json.tools) : NO_NAMES;
    this.freeformTools = host.wrapsCustomTools ? freeformTools(request) : NO_TOOLS;
    this.hidesReasoning = surface === "chat.completions" && hidesReasoning(json);
    this.isSummary = surface === "responses" && asksForSummary(json);
    const sequences = host.name === "responses" ? stopSequences(request) : [];
    this.cutter = sequences.length === 0 ? null : new StopCutter(sequences, writer);
  }

  /** Another of the host's events is read. */
  startEvent(): void {
    this.calls = 0;
    this.lastDelta = null;
  }

  /** The text of the event's only delta, where the event brought nothing else and no log probabilities. */
  get soleDelta(): string | null {
    return this.calls === 1 ? this.lastDelta : null;
  }

  /** A delta of the open block, spelt between the quotes of JSON, from an event like the one before. */
  appendDelta(bytes: Uint8Array, start: number, end: number, tokens: number, text: string): void {
    if (start === end) return;
    this.facts.text.addJson(bytes, start, end, this.blocks, tokens);
    this.pass(text);
  }

  /** Hosts may leave out the start of an answer, and may repeat it. */
  ensureStarted(): void {
    if (!this.started) this.start(null, this.facts.usage);
  }

  start(id: string | null, usage: Usage | null): void {
    this.calls += 1;
    this.facts.usage = usage;
    if (this.started) return;
    this.started = true;
    this.writer.start(id, usage);
  }

  open(block: OpenBlock): void {
    this.calls += 1;
    this.ensureStarted();
    const isCall = block.kind === "tool_call";
    if (isCall) {
      this.facts.tokenSeen = true;
      this.facts.text.add(block.name, ALONE);
    }
    this.blocks += 1;
    if (this.blocks > MAX_PARTS) throw new TooManyParts();
    this.lacksArguments = isCall && !block.custom;
    this.kind = block.kind;
    this.isWithheld = this.withholds(block.kind);
    if (this.isWithheld) return;
    if (isCall) this.openCall(block);
    else if (!this.hasSummary) this.writer.open(block);
    this.hasSummary = this.isSummary;
  }

  delta(text: string, logprobs?: readonly unknown[]): void {
    this.calls += 1;
    this.lastDelta = logprobs === undefined ? text : null;
    this.facts.tokenSeen = true;
    this.lacksArguments = false;
    this.facts.text.add(text, this.blocks);
    this.pass(text, logprobs);
  }

  cite(citation: Citation): void {
    this.calls += 1;
    if (!this.isWithheld && !this.isSummary) this.writer.cite(citation);
  }

  close(seal: Seal | null): void {
    this.calls += 1;
    if (seal !== null) this.facts.tokenSeen = true;
    // Anthropic streams no argument as none; OpenAI's clients parse the arguments as JSON.
    if (this.lacksArguments) this.pass("{}");
    if (this.isWithheld || this.isSummary) return;
    if (this.freeformCall !== null) this.passFreeformCall(this.freeformCall);
    this.cutter?.flush();
    this.writer.close(seal);
  }

  usage(usage: Usage): void {
    this.calls += 1;
    this.facts.usage = usage;
    if (usage.output > 0) this.facts.text.report();
    this.writer.usage(usage);
  }

  stop(reason: StopReason, sequence: string | null): void {
    this.calls += 1;
    this.facts.isFiltered = reason === "filter";
    this.facts.stoppedShort = this.facts.isFiltered || reason === "length";
    if (this.hasSummary) this.writer.close(null);
    const found = this.cutter?.found ?? null;
    if (found === null) this.writer.stop(reason, sequence);
    else this.writer.stop("sequence", found);
  }

  /**
   * Seals go with hidden reasoning: a host refuses its own signature without the text that it signs. Behind a stop
   * sequence nothing is shown.
   */
  private withholds(kind: OpenBlock["kind"]): boolean {
    if (this.cutter !== null && this.cutter.found !== null) return true;
    return (this.isSummary && kind !== "text") || (this.hidesReasoning && kind === "reasoning");
  }

  private openCall(block: OpenBlock & { readonly kind: "tool_call" }): void {
    if (this.freeformTools.has(block.name)) {
      this.freeformCall = { block: { ...block, custom: true }, arguments: "" };
      return;
    }
    const name = this.toolNames.get(block.name);
    this.writer.open(name === undefined ? block : { ...block, name });
  }

  private pass(text: string, logprobs?: readonly unknown[]): void {
    if (this.isWithheld) this.keepAlive();
    else if (this.freeformCall !== null) this.freeformCall.arguments += text;
    else if (this.cutter === null || this.kind !== "text") {
      this.writer.delta(text, logprobs);
      // The writer of a summary writes nothing before its end.
      if (this.isSummary) this.keepAlive();
    } else {
      this.cutter.delta(text, logprobs);
      this.isWithheld = this.cutter.found !== null;
    }
  }

  private passFreeformCall({ block, arguments: wrapped }: { block: OpenBlock; arguments: string }): void {
    this.freeformCall = null;
    this.writer.open(block);
    this.writer.delta(unwrappedInput(wrapped));
  }

  /** Proxies give up a connection that is silent for about a minute. */
  private keepAlive(): void {
    if (++this.withheldDeltas % DELTAS_PER_PING === 0) this.writer.ping();
  }
}

/** Seconds of a slow model. */
const DELTAS_PER_PING = 16;

const NO_NAMES: ReadonlyMap<string, string> = new Map();
const NO_TOOLS: ReadonlySet<string> = new Set();

/** Tools that a host which calls only functions knows as functions; Anthropic's `custom` is a function. */
function freeformTools({ surface, json }: Pick<GenerationRequest, "surface" | "json">): ReadonlySet<string> {
  if (surface === "messages") return NO_TOOLS;
  const offered = surface === "responses" ? offeredTools(json) : namedTools(json.tools);
  return new Set(offered.flatMap(({ custom, flat }) => (custom ? [flat] : [])));
}

/**
 * OpenRouter's `reasoning.exclude`, and `include_reasoning` before it (openrouter.ai, "Reasoning Tokens"); Groq's
 * `reasoning_format: "hidden"`. Where two of them disagree, the reasoning is hidden.
 */
const hidesReasoning = (json: GenerationRequest["json"]): boolean =>
  json.include_reasoning === false ||
  json.reasoning_format === "hidden" ||
  asObject(json.reasoning)?.exclude === true;
