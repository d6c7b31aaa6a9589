import type { SurfaceName } from "../../catalog/catalog.ts";
import type { ErrorObject, Refusal } from "../../errors/refusal.ts";
import { ALONE, AnswerText } from "../../tokens/answer-text.ts";
import { MAX_PARTS, TooManyParts } from "../events/answer-bounds.ts";
import { EventJudge } from "../events/event-judge.ts";
import type { FoundText } from "../events/event-template.ts";
import { type CurrentEvent, EVENT, eventEnd } from "../events/sse.ts";
import { textOf } from "../json/bytes.ts";
import { exactly } from "../json/exact-json.ts";
import { asObject, type Json } from "../json/json.ts";
import { withCacheMarks } from "../messages/cache-marks.ts";
import type { TextFinder } from "../passing/text-finder.ts";
import { accountReference } from "../request/account-references.ts";
import { sizeRequest } from "../request.ts";
import { asSummary } from "../responses/compaction.ts";
import type {
  AnswerMetadata,
  Billed,
  GenerationRequest,
  HostBody,
  HostTarget,
  Pairing,
  ReadReply,
  StreamJudge,
  Usage,
  WholeJudge,
} from "../surface.ts";
import type { AnswerEvents, Citation, OpenBlock, StopReason } from "../vocabulary/answer-events.ts";
import { type AnswerReader, isFault, type ReadOutcome } from "../vocabulary/answer-reader.ts";
import { type AnswerWriter, CollectedAnswer } from "../vocabulary/answer-writer.ts";
import type { Seal } from "../vocabulary/conversation.ts";
import { ObjectReader } from "../vocabulary/object-reader.ts";
import { familyOf } from "../vocabulary/seal.ts";
import { asCut } from "../vocabulary/stop-cutter.ts";
import { TranslationReport } from "../vocabulary/translation-report.ts";
import { asOffered } from "./called-tools.ts";
import { asShown } from "./hidden-thoughts.ts";
import { LANGUAGES } from "./languages.ts";

/**
 * A client of one language on a host of another: one language's reader meets the other's writer over the
 * vocabulary (conversation, answer-events), so three languages give six pairings.
 */
export function translation(client: SurfaceName, host: SurfaceName): Pairing {
  return {
    hostBody: (request, target) => hostBody(client, host, request, target),
    readReply: (body, request, asked) => readReply(client, host, body, request, asked),
    openStream: (request, asked) => {
      const family = familyOf(host, asked.publicModel);
      return new TranslatingJudge(
        LANGUAGES[client].openWriter(request, asked, family),
        host,
        request,
        family,
      );
    },
    openWhole: (request, asked) => new TranslatingWhole(client, host, request, asked),
  };
}

function hostBody(
  client: SurfaceName,
  host: SurfaceName,
  request: GenerationRequest,
  target: HostTarget,
): HostBody | Refusal {
  const { body: asked, json: read } = request;
  const report = new TranslationReport(client, host, target);
  const json = exactly(textOf(asked, 0, asked.length), read) as Json;
  report.judge(json);
  const body = new ObjectReader(json, report);
  // How the client's own stream is written: the host's is asked for its usage in any case.
  body.objectAmong("stream_options")?.skip("include_usage");
  const conversation = LANGUAGES[client].readRequest(body, json);
  report.leaveUnread();
  const refusal = report.refusal ?? accountReference(request, target);
  if (refusal !== null) return refusal;
  const written = LANGUAGES[host].writeRequest(conversation, report);
  if (report.refusal !== null) return report.refusal;
  const bytes = Buffer.from(JSON.stringify(written));
  // A client that names a cache key wants what it repeats to be cached.
  const marksCache = host === "messages" && (target.marksCache === true || conversation.cacheKey !== null);
  return {
    bytes: marksCache ? withCacheMarks(bytes) : bytes,
    omitted: report.omitted,
    content: () => ({ bytes, size: sizeRequest(bytes, written) }),
  };
}

/** A whole answer takes the way of every stream. */
function readReply(
  client: SurfaceName,
  host: SurfaceName,
  bytes: Uint8Array,
  request: GenerationRequest,
  asked: AnswerMetadata,
): ReadReply {
  const events = LANGUAGES[host].synthesizeStream(bytes);
  if (!(events instanceof Uint8Array)) return { kind: "fault", error: events };
  const judge = new TranslatingWhole(client, host, request, asked);
  judge.push(events);
  return judge.fault === null ? judge.reply() : { kind: "fault", error: judge.fault };
}

/** A streamed answer on its way from one language into another. */
class TranslatingJudge extends EventJudge implements StreamJudge {
  private readonly counter: CountingEvents;
  private readonly reader: AnswerReader;
  private readonly finder: TextFinder;

  constructor(
    private readonly writer: AnswerWriter,
    host: SurfaceName,
    request: GenerationRequest,
    hostFamily: string,
  ) {
    super();
    const onSilence = () => writer.ping();
    const told = asSummary(asShown(writer, request, onSilence), request, onSilence);
    const shown = asCut(told, request, host, onSilence);
    this.counter = new CountingEvents(asOffered(shown, request, LANGUAGES[host].wrapsCustomTools));
    this.reader = LANGUAGES[host].openReader(this.counter, hostFamily);
    this.finder = LANGUAGES[host].finder;
  }

  get tokenSeen(): boolean {
    return this.counter.tokenSeen;
  }

  get stoppedShort(): boolean {
    return this.counter.stoppedShort;
  }

  get text(): AnswerText {
    return this.counter.text;
  }

  get usage(): Usage | null {
    return this.counter.reported;
  }

  last(bill: Billed): Uint8Array {
    return this.writer.last(bill);
  }

  fail(error: ErrorObject): Uint8Array {
    return this.writer.fail(error);
  }

  protected closed(): Uint8Array {
    this.settle(this.reader.close());
    return this.writer.take();
  }

  protected read(bytes: Uint8Array): Uint8Array {
    const { template, counter } = this;
    const event = EVENT;
    for (let at = 0; at < bytes.length && !this.over; ) {
      const start = at;
      at = template.pass(bytes, start, null);
      if (at !== -1) {
        counter.goOn(bytes, template.text);
        continue;
      }
      at = eventEnd(bytes, start);
      event.moveTo(bytes, start, at);
      counter.awaitDelta();
      const outcome = this.reader.read(event.data);
      this.settle(outcome);
      if (outcome !== "ping" && !this.learn(event)) template.forget();
    }
    return this.writer.take();
  }

  /** An event that came to one delta of its one text: the next like it goes on with the same block. */
  private learn(event: CurrentEvent): boolean {
    const { finder, counter, template } = this;
    if (counter.soleDelta === null || !finder.find(event) || finder.found !== 1) return false;
    const [{ start, end }] = finder.texts as [FoundText];
    return plainText(event.bytes, start, end) === counter.soleDelta && template.learn(event, finder, null, 0);
  }

  private settle(outcome: ReadOutcome): void {
    if (outcome === "more") return;
    if (outcome === "stop") return this.stop();
    if (outcome === "ping") {
      // Before the first token nothing may be sent: another host may still have to serve.
      if (this.tokenSeen) this.writer.ping();
      return;
    }
    if (isFault(outcome)) {
      this.fault = outcome;
      return;
    }
    this.counter.begin();
    this.writer.finish();
    this.isComplete = true;
  }
}

/** An answer for a client of another language that wants it whole. */
class TranslatingWhole extends TranslatingJudge implements WholeJudge {
  private readonly answer: CollectedAnswer;

  constructor(
    private readonly client: SurfaceName,
    host: SurfaceName,
    private readonly request: GenerationRequest,
    private readonly asked: AnswerMetadata,
    private readonly family = familyOf(host, asked.publicModel),
  ) {
    const answer = new CollectedAnswer();
    super(answer, host, request, family);
    this.answer = answer;
  }

  reply(): ReadReply {
    const { client, answer, text, request, asked, family, usage, countedTokens } = this;
    const body = ({ tokens, costUsd }: Billed) => {
      const whole = LANGUAGES[client].writeAnswer(answer, tokens, request, asked, family);
      return Buffer.from(JSON.stringify({ ...whole, usage: { ...asObject(whole.usage), cost: costUsd } }));
    };
    return { kind: "reply", body, usage, countedTokens, texts: () => text.all().texts };
  }
}

/** What a text between the quotes of JSON says. */
function plainText(bytes: Uint8Array, start: number, end: number): string {
  const spelt = textOf(bytes, start, end);
  return spelt.includes("\\") ? JSON.parse(`"${spelt}"`) : spelt;
}

/** Counts what passes, and notes when the first token has. */
class CountingEvents implements AnswerEvents {
  readonly text = new AnswerText();
  tokenSeen = false;
  stoppedShort = false;
  reported: Usage | null = null;
  private begun = false;
  private blocks = 0;
  /** A function was called, and no argument has been told yet. */
  private bare = false;
  /** Of the event at hand. */
  private calls = 0;
  private lastDelta: string | null = null;

  constructor(private readonly next: AnswerEvents) {}

  /** Another event is read. */
  awaitDelta(): void {
    this.calls = 0;
    this.lastDelta = null;
  }

  /** The text of which the event at hand told one delta, without more, and nothing else. */
  get soleDelta(): string | null {
    return this.calls === 1 ? this.lastDelta : null;
  }

  /** A delta of the open block from an event that was passed like the one before. */
  goOn(bytes: Uint8Array, { start, end, tokens }: FoundText): void {
    if (start === end) return;
    this.text.addJson(bytes, start, end, this.blocks, tokens);
    this.next.delta(plainText(bytes, start, end));
  }

  /** A host that says no word of it has begun all the same. */
  begin(): void {
    if (!this.begun) this.start(null, this.reported);
  }

  start(id: string | null, usage: Usage | null): void {
    this.calls += 1;
    this.reported = usage;
    // A client is told once, whatever a host repeats.
    if (this.begun) return;
    this.begun = true;
    this.next.start(id, usage);
  }

  open(block: OpenBlock): void {
    this.calls += 1;
    this.begin();
    if (block.kind === "tool_call") {
      this.tokenSeen = true;
      this.text.add(block.name, ALONE);
    }
    this.blocks += 1;
    if (this.blocks > MAX_PARTS) throw new TooManyParts();
    this.bare = block.kind === "tool_call" && !block.custom;
    this.next.open(block);
  }

  delta(text: string, logprobs?: readonly unknown[]): void {
    this.calls += 1;
    this.lastDelta = logprobs === undefined ? text : null;
    this.tokenSeen = true;
    this.bare = false;
    this.text.add(text, this.blocks);
    this.next.delta(text, logprobs);
  }

  cite(citation: Citation): void {
    this.calls += 1;
    this.next.cite(citation);
  }

  close(seal: Seal | null): void {
    this.calls += 1;
    if (seal !== null) this.tokenSeen = true;
    // Anthropic streams no argument as none; OpenAI's clients parse what they were told as JSON.
    if (this.bare) this.next.delta("{}");
    this.next.close(seal);
  }

  usage(usage: Usage): void {
    this.calls += 1;
    this.reported = usage;
    if (usage.output > 0) this.text.report();
    this.next.usage(usage);
  }

  stop(reason: StopReason, sequence: string | null): void {
    this.calls += 1;
    this.stoppedShort = reason === "length" || reason === "filter";
    this.next.stop(reason, sequence);
  }
}
