import { invalid, type Refusal, refused } from "../../units/errors/refusal.ts";
import { COMMENT } from "../events/sse.ts";
import { streamSynthesizer } from "../events/stream-synthesis.ts";
import { asObject, type Json } from "../json/json.ts";
import type { Language } from "../language.ts";
import { addText, replyReader } from "../passing/reply.ts";
import { withOwnBreakpoint } from "../request/own-marks.ts";
import { withoutAddedOwnTools } from "../request/own-tools.ts";
import {
  checkCount,
  passedBody,
  passedChanges,
  readCeiling,
  readRequestBody,
  toRequest,
} from "../request.ts";
import type { GenerationRequest, HostBody, HostTarget } from "../surface.ts";
import { readOpenAiUsage, writeResponsesUsage } from "../usage.ts";
import { faultIn, isFiltered, ResponsesReader } from "./answer-reader.ts";
import { itemForm, ResponsesWriter, writeResponsesAnswer } from "./answer-writer.ts";
import { ResponsesCollector } from "./collector.ts";
import { asksForSummary, SUMMARY_REQUEST, withPlainSummaries } from "./compaction.ts";
import { requestEncrypted, withReadableThoughts } from "./encrypted-reasoning.ts";
import { ResponsesJudge } from "./judge.ts";
import { readResponsesRequest } from "./request-reader.ts";
import { writeResponsesRequest } from "./request-writer.ts";
import { synthesizeResponsesStream } from "./synthesize-stream.ts";
import { RESPONSES_TEXTS } from "./text-events.ts";

/** OpenAI's Responses (platform.openai.com, "Responses", create and "Streaming events"). */
export const responses: Language = {
  name: "responses",
  path: "/responses",
  keepalive: COMMENT,
  readRequest,
  errorBody: (error) => Buffer.from(JSON.stringify({ error })),
  brokenOff: (error) => new ResponsesJudge("", null).fail(error, null),
  synthesizeStream: streamSynthesizer(faultIn, synthesizeResponsesStream),
  passing: {
    hostBody,
    readReply: replyReader(faultIn, readTexts, isFiltered, readOpenAiUsage, writeResponsesUsage),
    openStream: (_request, { publicModel }) => new ResponsesJudge(publicModel, null),
    openWhole: (_request, { publicModel }) => new ResponsesJudge(publicModel, new ResponsesCollector()),
  },
  readConversation: readResponsesRequest,
  writeConversation: writeResponsesRequest,
  openReader: (events, family) => new ResponsesReader(events, family),
  texts: RESPONSES_TEXTS,
  // Every event repeats the request, but for its prompt.
  openWriter: ({ json }, metadata) =>
    new ResponsesWriter({ ...json, input: undefined }, metadata, itemForm(json)),
  writeAnswer: (answer, usage, { json }, metadata) => writeResponsesAnswer(answer, usage, json, metadata),
  wrapsCustomTools: false,
};

function readRequest(bytes: Uint8Array, outlinedFrom?: number): GenerationRequest | Refusal {
  const read = readRequestBody(bytes, "responses", outlinedFrom);
  if (refused(read)) return read;
  const { json, outline } = read;
  const problem = checkInput(outline) ?? checkMemory(outline);
  if (problem !== null) return problem;
  const ceiling = readCeiling(json, "max_output_tokens");
  if (refused(ceiling)) return ceiling;
  const request = toRequest(read, ceiling, 1);
  return asksForSummary(outline) ? withSummaryRequest(request) : request;
}

/** What hosts of other languages get in addition to the prompt is held like it. */
const withSummaryRequest = (request: GenerationRequest): GenerationRequest => ({
  ...request,
  promptBound: request.promptBound + SUMMARY_REQUEST.length,
  mediaTokens: request.mediaTokens + SUMMARY_REQUEST.length,
});

/** A prompt that is kept at OpenAI may stand for the input. */
function checkInput({ input, prompt }: Json): Refusal | null {
  const isThere =
    input === undefined
      ? prompt !== undefined
      : typeof input === "string" || (Array.isArray(input) && input.length > 0);
  if (!isThere) return invalid("input", "must be a string or a non-empty array");
  return Array.isArray(input) ? checkCount("input", input) : null;
}

/**
 * What needs a memory of earlier requests at one host. A gateway that may send the next request elsewhere
 * cannot promise it, so it says so instead of failing later.
 */
function checkMemory(json: Json): Refusal | null {
  for (const [name, why] of Object.entries(REMEMBERED)) {
    if (json[name] !== undefined && json[name] !== null) return invalid(name, why);
  }
  if (json.background === true) return invalid("background", "is not served: responses are not stored");
  if (json.store === true) return invalid("store", "must be false or absent: responses are not stored");
  if (!Array.isArray(json.input)) return null;
  const reference = json.input.findIndex((item) => asObject(item)?.type === "item_reference");
  return reference === -1 ? null : invalid(`input[${reference}]`, NO_REFERENCES);
}

const REMEMBERED = {
  previous_response_id:
    "cannot be continued here, because responses are not stored: send the whole conversation in `input`",
  conversation:
    "cannot be used here, because conversations are not stored: send the whole conversation in `input`",
} as const;

/** Vercel's AI SDK refers to what it received before, unless it knows that nothing is stored. */
const NO_REFERENCES =
  "refers to an item of an earlier response, and responses are not stored: send the item itself (in Vercel's AI SDK, set `providerOptions.openai.store` to false)";

function hostBody(request: GenerationRequest, target: HostTarget): HostBody | Refusal {
  const changes = passedChanges(request, target);
  if (refused(changes)) return changes;
  // Absent means true at OpenAI, and the client could not fetch what is stored under the gateway's account
  // there.
  changes.set("store", "false");
  if (target.maxOutputTokens !== null) changes.set("max_output_tokens", String(target.maxOutputTokens));
  const changed = changedInput(request, target);
  if (refused(changed)) return changed;
  if (changed !== null && changed.omitted.size > 0)
    changes.leaveOut("input", JSON.stringify(changed.input), changed.omitted);
  else if (changed !== null) changes.set("input", JSON.stringify(changed.input));
  requestEncrypted(request.json, changes);
  return withOwnBreakpoint(passedBody(request, changes), request, target);
}

/** The input as the host is sent it, and what it lacks; null where it stays as it is. */
function changedInput(request: GenerationRequest, target: HostTarget): ChangedInput | Refusal | null {
  // Whether anything changes is decided by the outline; what does is written from the whole texts.
  for (const json of [request.outline, request.json]) {
    if (!Array.isArray(json.input)) return null;
    const omitted = new Set<string>();
    const input = passedInput(json.input, request.body, target, omitted);
    if (refused(input)) return input;
    if (omitted.size === 0 && input === json.input) return null;
    if (json === request.json) return { input, omitted };
  }
  return null;
}

interface ChangedInput {
  readonly input: readonly unknown[];
  readonly omitted: ReadonlySet<string>;
}

function passedInput(
  input: readonly unknown[],
  body: Uint8Array,
  target: HostTarget,
  omitted: Set<string>,
): readonly unknown[] | Refusal {
  const offering = withoutAddedOwnTools(input, target, omitted);
  return refused(offering)
    ? offering
    : withReadableThoughts(withPlainSummaries(offering, body), body, omitted);
}

function readTexts({ output }: Json, texts: string[]): null {
  for (const item of output as readonly unknown[]) addItem(texts, asObject(item));
  return null;
}

function addItem(texts: string[], item: Record<string, unknown> | null): void {
  if (item === null) return;
  for (const text of [item.name, item.arguments, item.input]) addText(texts, text);
  for (const parts of [item.content, item.summary]) {
    if (!Array.isArray(parts)) continue;
    for (const value of parts) {
      const part = asObject(value);
      addText(texts, part?.text);
      addText(texts, part?.refusal);
    }
  }
}
