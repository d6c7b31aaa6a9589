import { invalid, type Refusal, refused } from "../../units/errors/refusal.ts";
import { COMMENT } from "../events/sse.ts";
import { streamSynthesizer } from "../events/stream-synthesis.ts";
import { asObject, type Json, type MutableJson } from "../json/json.ts";
import type { Language } from "../language.ts";
import { addText, replyReader } from "../passing/reply.ts";
import type { BodyChanges } from "../request/body-changes.ts";
import { withOwnBreakpoint } from "../request/own-marks.ts";
import {
  checkMessages,
  passedBody,
  passedChanges,
  readCeiling,
  readChoices,
  readRequestBody,
  toRequest,
} from "../request.ts";
import type { GenerationRequest, HostBody, HostTarget } from "../surface.ts";
import { readOpenAiUsage, writeChatUsage } from "../usage.ts";
import { mayHoldSeals, withoutSeals } from "../vocabulary/seal.ts";
import { ChatReader, ceilingOf, faultIn, isFiltered, withMessages } from "./answer-reader.ts";
import { ChatWriter, writeChatAnswer } from "./answer-writer.ts";
import { ChatCollector } from "./collector.ts";
import { mayHoldForeignMarks, withoutForeignMarks } from "./foreign-cache-marks.ts";
import { fitMessages, isStrict } from "./host-messages.ts";
import { ChatJudge } from "./judge.ts";
import { putOpenRouterWords, wantsUsage } from "./openrouter-words.ts";
import { makeContentPlain } from "./plain-content.ts";
import { readChatRequest } from "./request-reader.ts";
import { writeChatRequest } from "./request-writer.ts";
import { synthesizeChatStream } from "./synthesize-stream.ts";
import { CHAT_TEXTS, forEachWritten } from "./text-events.ts";

/** OpenAI's Chat Completions (platform.openai.com, "Chat Completions", create and streaming). */
export const chat: Language = {
  name: "chat.completions",
  path: "/chat/completions",
  keepalive: COMMENT,
  readRequest,
  errorBody: (error) => Buffer.from(JSON.stringify({ error })),
  brokenOff: (error) => new ChatJudge("", null, false).fail(error, null),
  synthesizeStream: streamSynthesizer(faultIn, synthesizeChatStream),
  passing: {
    hostBody,
    readReply: replyReader(faultIn, readTexts, isFiltered, readOpenAiUsage, writeChatUsage),
    openStream: (request, { publicModel }) =>
      new ChatJudge(publicModel, null, wantsUsage(request.json), ceilingOf(request)),
    openWhole: (request, { publicModel }) =>
      new ChatJudge(publicModel, new ChatCollector(), true, ceilingOf(request)),
  },
  readConversation: readChatRequest,
  writeConversation: writeChatRequest,
  openReader: (events, family, request) => new ChatReader(events, family, ceilingOf(request)),
  texts: CHAT_TEXTS,
  openWriter: ({ json }, metadata) => new ChatWriter(metadata, wantsUsage(json)),
  writeAnswer: (answer, usage, _request, metadata) => writeChatAnswer(answer, usage, metadata),
  wrapsCustomTools: true,
};

function readRequest(bytes: Uint8Array, outlinedFrom?: number): GenerationRequest | Refusal {
  const read = readRequestBody(bytes, "chat.completions", outlinedFrom);
  if (refused(read)) return read;
  const { json } = read;
  const ceiling = readCeiling(json, ...CEILINGS);
  const choices = readChoices(json);
  const problem = checkMessages(read.outline) ?? checkStreamOptions(json.stream_options);
  if (problem !== null) return problem;
  if (refused(ceiling)) return ceiling;
  return refused(choices) ? choices : toRequest(read, ceiling, choices);
}

function checkStreamOptions(options: unknown): Refusal | null {
  if (options === undefined || options === null) return null;
  const included = asObject(options)?.include_usage;
  if (asObject(options) === null) return invalid("stream_options", "must be an object");
  const fine = included === undefined || included === null || typeof included === "boolean";
  return fine ? null : invalid("stream_options.include_usage", "must be true or false");
}

function hostBody(request: GenerationRequest, target: HostTarget): HostBody | Refusal {
  const changes = passedChanges(request, target);
  if (refused(changes)) return changes;
  if (target.stream) {
    // Usage is what is billed by: always asked for, and withheld from a client that did not ask.
    const options = { ...asObject(request.json.stream_options), include_usage: true };
    changes.set("stream_options", target.quirks.noStreamOptions === true ? null : JSON.stringify(options));
  }
  putOpenRouterWords(request, target, changes);
  nameCeiling(request, target, changes);
  if (target.quirks.coreFieldsOnly === true) leaveOutOpenAi(request, changes);
  passMessages(request, target, changes);
  return withOwnBreakpoint(passedBody(request, changes), request, target);
}

/**
 * Where a host knows one name of the ceiling only, it gets that one. OpenAI's reasoning models refuse
 * `max_tokens`; Mistral refuses `max_completion_tokens`, and Ollama, which does not know it either, would
 * write on without a ceiling (ollama/ollama#7125).
 */
function nameCeiling({ json }: GenerationRequest, target: HostTarget, changes: BodyChanges): void {
  const { quirks, maxOutputTokens } = target;
  const most = maxOutputTokens ?? Number.POSITIVE_INFINITY;
  if (!(quirks.maxCompletionTokens === true || quirks.coreFieldsOnly === true)) {
    let isNamed = false;
    for (const name of CEILINGS) {
      const named = json[name];
      if (typeof named !== "number") continue;
      isNamed = true;
      if (named > most) changes.set(name, String(most));
    }
    if (!isNamed && maxOutputTokens !== null) changes.set("max_tokens", String(most));
    return;
  }
  const [known, other] =
    quirks.maxCompletionTokens === true
      ? (["max_completion_tokens", "max_tokens"] as const)
      : (["max_tokens", "max_completion_tokens"] as const);
  const named = (json[known] ?? json[other] ?? maxOutputTokens) as number | null;
  if (named !== null) changes.set(known, String(Math.min(named, most)));
  if (json[other] !== undefined) changes.set(other, null);
}

const CEILINGS = ["max_tokens", "max_completion_tokens"] as const;

/** Reported where they name something, as they are where a request is translated. */
function leaveOutOpenAi({ json }: GenerationRequest, changes: BodyChanges): void {
  for (const name of OPENAI_ONLY) {
    const value = json[name];
    if (value !== undefined) changes.drop(name, value === false ? null : value);
  }
}

/**
 * Refused by name as fields that nobody knows: by Gemini (“Unknown name "store": Cannot find field”), Mistral
 * (“Extra inputs are not permitted”), Groq and Cerebras (“property 'store' is unsupported”).
 */
const OPENAI_ONLY = [
  "store",
  "metadata",
  "user",
  "safety_identifier",
  "prompt_cache_key",
  "prompt_cache_retention",
  "prompt_cache_options",
  "service_tier",
  "verbosity",
];

/** Without seals that another language made, with marks of the host's own, and as strict hosts take them. */
function passMessages({ body, json }: GenerationRequest, { quirks }: HostTarget, changes: BodyChanges): void {
  const sealed = mayHoldSeals(body);
  const isMarked = mayHoldForeignMarks(body, quirks);
  if (!sealed && !isMarked && !isStrict(quirks)) return;
  const lost = new Set<string>();
  if (sealed) lost.add("reasoning");
  const open = (sealed ? withoutSeals(json.messages) : json.messages) as readonly Json[];
  const messages = isMarked ? withoutForeignMarks(open, quirks, lost) : open;
  const { messages: fitted, changed, lost: unfit } = fitMessages(messages, quirks);
  for (const name of unfit) lost.add(name);
  if (lost.size > 0) changes.leaveOut("messages", JSON.stringify(fitted), lost);
  else if (changed || messages !== open) changes.set("messages", JSON.stringify(fitted));
}

/** The reply as clients take it; null where it may stay as it came. */
function readTexts(reply: MutableJson, texts: string[]): Json | null {
  let isPlain = true;
  for (const choice of reply.choices as readonly unknown[]) {
    const message = asObject(asObject(choice)!.message);
    if (makeContentPlain(message)) isPlain = false;
    forEachWritten(message, (text) => addText(texts, text));
  }
  return withMessages(reply) ?? (isPlain ? null : reply);
}
