import type { ErrorObject, Refusal } from "../../units/errors/refusal.ts";
import { EventJudge } from "../events/event-judge.ts";
import { SOLE_TEXT, type TextEvents } from "../events/sole-text.ts";
import { type CurrentEvent, EVENT, eventEnd } from "../events/sse.ts";
import { textOf } from "../json/bytes.ts";
import { exactly } from "../json/exact-json.ts";
import { asObject, type Json, parseObject } from "../json/json.ts";
import type { Language } from "../language.ts";
import { olderVersion } from "../messages/version.ts";
import { accountReference } from "../request/account-references.ts";
import { withBreakpoint, withCacheMarks } from "../request/own-marks.ts";
import { sizeWritten } from "../request.ts";
import type {
  AnswerMetadata,
  Billed,
  GenerationRequest,
  HostBody,
  HostTarget,
  Pairing,
  ReadReply,
  StreamJudge,
  WholeJudge,
} from "../surface.ts";
import { type AnswerReader, isFault, type ReadOutcome } from "../vocabulary/answer-events.ts";
import { type AnswerWriter, CollectedAnswer } from "../vocabulary/answer-writer.ts";
import { adaptMarks, markStyle, nearestRetention } from "../vocabulary/cache-marks.ts";
import type { Conversation } from "../vocabulary/conversation.ts";
import { ObjectReader } from "../vocabulary/object-reader.ts";
import { familyOf } from "../vocabulary/seal.ts";
import { TranslationReport } from "../vocabulary/translation-report.ts";
import { AnswerPolicy } from "./answer-policy.ts";

/**
 * A client of one language on a host of another: one language's reader meets the other's writer over the
 * vocabulary (conversation, answer-events), so three languages give six pairings.
 */
export function translation(client: Language, host: Language): Pairing {
  return {
    hostBody: (request, target) => hostBody(client, host, request, target),
    readReply: (body, request, metadata) => readReply(client, host, body, request, metadata),
    openStream: (request, metadata) => {
      const family = familyOf(host.name, metadata.publicModel);
      return new TranslatingJudge(client.openWriter(request, metadata, family), host, request, family);
    },
    openWhole: (request, metadata) => new TranslatingWhole(client, host, request, metadata),
  };
}

function hostBody(
  client: Language,
  host: Language,
  request: GenerationRequest,
  target: HostTarget,
): HostBody | Refusal {
  const { body: sent, json: read } = request;
  const report = new TranslationReport(client.name, host.name, target);
  const json = exactly(textOf(sent, 0, sent.length), read) as Json;
  report.judge(json);
  const body = new ObjectReader(json, report);
  // How the client's own stream is written: the host's is asked for its usage in any case.
  body.objectAmong("stream_options")?.skip("include_usage");
  const asRead = client.readConversation(body, json);
  report.leaveUnread();
  const refusal = report.refusal ?? accountReference(request, target);
  if (refusal !== null) return refusal;
  const conversation = adaptMarks(asRead, report);
  const written = host.writeConversation(conversation, report);
  if (report.refusal !== null) return report.refusal;
  const bytes = Buffer.from(JSON.stringify(written));
  return {
    parts: [withOwnMarks(bytes, conversation, report)],
    omitted: report.omitted,
    ...(host.name === "messages" ? olderVersion(written) : {}),
    content: () => ({ bytes, size: sizeWritten(bytes, written) }),
  };
}

/**
 * With marks for the host's cache where the client has set none and wants them: the operator or the request says so. On
 * Messages, which caches nothing without, also where the client speaks of its cache.
 */
function withOwnMarks(bytes: Uint8Array, conversation: Conversation, report: TranslationReport): Uint8Array {
  const { host, target } = report;
  const { cacheKey, cacheOptions } = conversation;
  if (cacheOptions?.mode === "explicit") return bytes;
  if (host === "messages") {
    const isRequested = target.marksCache === true || cacheKey !== null || cacheOptions !== null;
    const retention = nearestRetention(cacheOptions?.retention ?? "5m", report);
    return isRequested ? withCacheMarks(bytes, retention === "1h" ? retention : "5m") : bytes;
  }
  const isRequested = target.marksCache === true && markStyle(host, target) === "breakpoint";
  return isRequested ? withBreakpoint(bytes, host) : bytes;
}

/** A whole answer takes the way of every stream. */
function readReply(
  client: Language,
  host: Language,
  bytes: Uint8Array,
  request: GenerationRequest,
  metadata: AnswerMetadata,
): ReadReply {
  const events = host.synthesizeStream(bytes);
  if (!(events instanceof Uint8Array)) return { kind: "fault", error: events };
  const judge = new TranslatingWhole(client, host, request, metadata);
  judge.push(events);
  return judge.fault === null ? judge.reply() : { kind: "fault", error: judge.fault };
}

/** A streamed answer on its way from one language into another. */
class TranslatingJudge extends EventJudge implements StreamJudge {
  private readonly policy: AnswerPolicy;
  private readonly reader: AnswerReader;
  private readonly texts: TextEvents;

  constructor(
    private readonly writer: AnswerWriter,
    host: Language,
    request: GenerationRequest,
    hostFamily: string,
  ) {
    super();
    this.policy = new AnswerPolicy(writer, request, host, this);
    this.reader = host.openReader(this.policy, hostFamily, request);
    this.texts = host.texts;
  }

  last(bill: Billed): Uint8Array {
    return this.writer.last(bill);
  }

  fail(error: ErrorObject): Uint8Array {
    return this.writer.fail(error);
  }

  protected closed(): Uint8Array {
    this.applyOutcome(this.reader.close());
    return this.writer.take();
  }

  protected read(bytes: Uint8Array): Uint8Array {
    const { template, policy } = this;
    const event = EVENT;
    for (let at = 0; at < bytes.length && !this.over; ) {
      const start = at;
      at = template.pass(bytes, start, null);
      if (at !== -1) {
        const { start: textStart, end, tokens } = template.text;
        policy.appendDelta(bytes, textStart, end, tokens, plainText(bytes, textStart, end));
        continue;
      }
      at = eventEnd(bytes, start);
      event.moveTo(bytes, start, at);
      policy.startEvent();
      const outcome = this.reader.read(event.data);
      this.applyOutcome(outcome);
      if (outcome !== "ping" && !this.learn(event)) template.forget();
    }
    return this.writer.take();
  }

  /** The next event like one that brought a single delta continues the same block. */
  private learn(event: CurrentEvent): boolean {
    const { texts, policy, template } = this;
    const { soleDelta } = policy;
    if (soleDelta === null || !template.mayLearn(event)) return false;
    const data = parseObject(event.data!);
    if (data === null || texts.soleText(data)?.text !== soleDelta) return false;
    if (!SOLE_TEXT.find(event, data, texts)) return false;
    template.learn(event, SOLE_TEXT, null, 0);
    return true;
  }

  private applyOutcome(outcome: ReadOutcome): void {
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
    this.policy.ensureStarted();
    this.writer.finish();
    this.isComplete = true;
  }
}

/** An answer for a client of another language that wants it whole. */
class TranslatingWhole extends TranslatingJudge implements WholeJudge {
  private readonly answer: CollectedAnswer;

  constructor(
    private readonly client: Language,
    host: Language,
    private readonly request: GenerationRequest,
    private readonly metadata: AnswerMetadata,
    private readonly family = familyOf(host.name, metadata.publicModel),
  ) {
    const answer = new CollectedAnswer();
    super(answer, host, request, family);
    this.answer = answer;
  }

  reply(): ReadReply {
    const { client, answer, text, request, metadata, family, usage, isDeclined, countedTokens } = this;
    const body = ({ tokens, costUsd, more }: Billed) => {
      const whole = client.writeAnswer(answer, tokens, request, metadata, family);
      return Buffer.from(
        JSON.stringify({ ...whole, usage: { ...asObject(whole.usage), ...more, cost: costUsd } }),
      );
    };
    return { kind: "reply", body, usage, isDeclined, countedTokens, texts: () => text.all().texts };
  }
}

/** What a text between the quotes of JSON says. */
function plainText(bytes: Uint8Array, start: number, end: number): string {
  const spelt = textOf(bytes, start, end);
  return spelt.includes("\\") ? JSON.parse(`"${spelt}"`) : spelt;
}
