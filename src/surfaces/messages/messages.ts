import { invalid, type Refusal, refuse, refused } from "../../units/errors/refusal.ts";
import { streamSynthesizer } from "../events/stream-synthesis.ts";
import { joined } from "../json/bytes.ts";
import { asObject, type Json } from "../json/json.ts";
import type { Language } from "../language.ts";
import { encodeEvent } from "../passing/judge.ts";
import { replyReader } from "../passing/reply.ts";
import type { BodyChanges } from "../request/body-changes.ts";
import { lowerBudget } from "../request/lowered-budget.ts";
import { withCacheMarks } from "../request/own-marks.ts";
import {
  checkMessages,
  passedBody,
  passedChanges,
  readCeiling,
  readRequestBody,
  toRequest,
} from "../request.ts";
import type { GenerationRequest, HostBody, HostTarget } from "../surface.ts";
import { readAnthropicUsage, writeMessagesUsage } from "../usage.ts";
import { mayHoldSeals, withoutSeals } from "../vocabulary/seal.ts";
import { faultIn, isFiltered, MessagesReader } from "./answer-reader.ts";
import { MessagesWriter, writeMessagesAnswer } from "./answer-writer.ts";
import { MessagesCollector } from "./collector.ts";
import { readWriters } from "./fallback-blocks.ts";
import { MessagesJudge } from "./judge.ts";
import { readMessagesRequest } from "./request-reader.ts";
import { writeMessagesRequest } from "./request-writer.ts";
import { synthesizeMessagesStream } from "./synthesize-stream.ts";
import { addBlock, MESSAGES_TEXTS } from "./text-events.ts";
import { FALLBACKS_BETA, olderVersion } from "./version.ts";

/** Anthropic's Messages (docs.anthropic.com, "Messages" and "Streaming messages"). */
export const messages: Language = {
  name: "messages",
  path: "/messages",
  keepalive: encodeEvent("ping", { type: "ping" }),
  readRequest,
  errorBody: (error, receiptId) =>
    Buffer.from(JSON.stringify({ type: "error", error, request_id: receiptId })),
  brokenOff: (error) => new MessagesJudge("", null).fail(error, null),
  synthesizeStream: streamSynthesizer(faultIn, synthesizeMessagesStream),
  passing: {
    hostBody,
    readReply: replyReader(
      faultIn,
      readTexts,
      isFiltered,
      (usage) => readAnthropicUsage(usage, null),
      writeMessagesUsage,
      readWriters,
    ),
    openStream: (_request, { publicModel, idOf }) => new MessagesJudge(publicModel, null, idOf),
    openWhole: (_request, { publicModel, idOf }) =>
      new MessagesJudge(publicModel, new MessagesCollector(), idOf),
  },
  readConversation: readMessagesRequest,
  writeConversation: writeMessagesRequest,
  openReader: (events, family) => new MessagesReader(events, family),
  texts: MESSAGES_TEXTS,
  openWriter: ({ promptEstimate }, metadata, family) => new MessagesWriter(metadata, family, promptEstimate),
  writeAnswer: (answer, usage, _request, metadata, family) =>
    writeMessagesAnswer(answer, usage, metadata, family),
  wrapsCustomTools: true,
};

function readRequest(bytes: Uint8Array, outlinedFrom?: number): GenerationRequest | Refusal {
  const read = readRequestBody(bytes, "messages", outlinedFrom);
  if (refused(read)) return read;
  const problem = checkThread(read.json) ?? checkMessages(read.outline);
  if (problem !== null) return problem;
  const ceiling = readCeiling(read.json, "max_tokens");
  if (ceiling === null) return invalid("max_tokens", "is required: a whole number from 1");
  return refused(ceiling) ? ceiling : toRequest(read, ceiling, 1);
}

/**
 * A conversation that one host keeps cannot go on at another, is open to all who share the gateway's account
 * there, and is billed for a prompt that nobody here has seen. By the hint, Anthropic's tool runner, which
 * requests one by default, goes on without.
 */
function checkThread({ thread }: Readonly<Record<string, unknown>>): Refusal | null {
  if (thread === undefined || thread === null) return null;
  return refuse(
    "invalid_request",
    "`thread` cannot be used here, because conversations are not stored: send the whole conversation in `messages`.",
    { param: "thread", hint: { error_code: "thread_unsupported_request", unsupported: ["thread"] } },
  );
}

function hostBody(request: GenerationRequest, target: HostTarget): HostBody | Refusal {
  const changes = passedChanges(request, target);
  if (refused(changes)) return changes;
  const { maxOutputTokens: ceiling } = target;
  if (ceiling !== null) {
    changes.set("max_tokens", String(ceiling));
    lowerBudget("thinking", "budget_tokens", request, ceiling, changes);
  }
  leaveOutSeals(request, changes);
  const beta = target.fallbacks === undefined ? {} : { beta: FALLBACKS_BETA };
  const passed = { ...passedBody(request, changes), ...olderVersion(request.json), ...beta };
  return target.marksCache === true ? { ...passed, parts: [withCacheMarks(joined(passed.parts))] } : passed;
}

/** Thoughts that another language sealed are nothing to this host: what is left out is reported. */
function leaveOutSeals({ body, json }: GenerationRequest, changes: BodyChanges): void {
  if (!mayHoldSeals(body)) return;
  changes.leaveOut("messages", JSON.stringify(withoutSeals(json.messages)), ["reasoning"]);
}

function readTexts({ content }: Json, texts: string[]): null {
  for (const block of content as readonly unknown[]) addBlock(texts, asObject(block));
  return null;
}
