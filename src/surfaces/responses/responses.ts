import { type ErrorObject, type Refusal, refused } from "../../errors/refusal.ts";
import { tokensOf } from "../../tokens/estimate.ts";
import { replaceSpan } from "../bytes.ts";
import { errorOf, fault, readHostError } from "../host-error.ts";
import { asObject } from "../json.ts";
import { encodeEvent, PassingJudge } from "../judge.ts";
import { leaveOutOwnTools } from "../own-tools.ts";
import { parseReply, withModel } from "../reply.ts";
import { invalid, leaveOutSeals, passedChanges, readBody, readCeiling, toRequest } from "../request.ts";
import type { CurrentEvent } from "../sse.ts";
import type { Asked, GenerationRequest, HostBody, HostTarget, Pairing, Reply, Surface } from "../surface.ts";
import { readOpenAiUsage } from "../usage.ts";
import { ResponsesCollector } from "./collector.ts";

/** OpenAI's Responses (platform.openai.com, "Responses", create and "Streaming events"). */
export const responses: Surface = {
  name: "responses",
  path: "/responses",
  readRequest,
  errorBody: (error) => Buffer.from(JSON.stringify({ error })),
  readHostError,
};

/** Responses client, responses host. */
export const responsesToResponses: Pairing = {
  hostBody,
  readReply,
  openStream: (_request, { publicModel }) => new ResponsesJudge(publicModel, null),
  openWhole: (_request, { publicModel }) => new ResponsesJudge(publicModel, new ResponsesCollector()),
};

/**
 * What needs a memory of earlier requests at one host. A gateway that may send the next request elsewhere cannot promise
 * it, so it says so instead of failing later.
 */
const STATEFUL = {
  previous_response_id:
    "cannot be continued here, because responses are not stored: send the whole conversation in `input`",
  conversation:
    "cannot be used here, because conversations are not stored: send the whole conversation in `input`",
} as const;

/** Vercel's AI SDK refers to what it was told before, unless it knows that nothing is stored. */
const NO_REFERENCES =
  "refers to an item of an earlier response, and responses are not stored: send the item itself (in Vercel's AI SDK, set `providerOptions.openai.store` to false)";

function readRequest(bytes: Uint8Array): GenerationRequest | Refusal {
  const read = readBody(bytes, "responses");
  if (refused(read)) return read;
  const { json } = read;
  const { input, background, store } = json;
  if (input === undefined && json.prompt === undefined)
    return invalid("input", "must be a string or a non-empty array");
  const fine = input === undefined || typeof input === "string" || (Array.isArray(input) && input.length > 0);
  if (!fine) return invalid("input", "must be a string or a non-empty array");
  for (const [name, why] of Object.entries(STATEFUL)) {
    if (json[name] !== undefined && json[name] !== null) return invalid(name, why);
  }
  if (background === true) return invalid("background", "is not served: responses are not stored");
  if (store === true) return invalid("store", "must be false or absent: responses are not stored");
  const reference = Array.isArray(input)
    ? input.findIndex((item) => asObject(item)?.type === "item_reference")
    : -1;
  if (reference !== -1) return invalid(`input[${reference}]`, NO_REFERENCES);
  const ceiling = readCeiling(json, "max_output_tokens");
  return refused(ceiling) ? ceiling : toRequest(read, ceiling, 1);
}

function hostBody(request: GenerationRequest, target: HostTarget): HostBody | Refusal {
  const changes = passedChanges(request, target);
  const fee = leaveOutOwnTools(request, target, changes);
  if (fee !== null) return fee;
  // Absent means true at OpenAI, and the client could not fetch what is stored under the gateway's account there.
  changes.set("store", "false");
  if (target.maxOutputTokens !== null) changes.set("max_output_tokens", String(target.maxOutputTokens));
  leaveOutSeals(request, "input", changes);
  return { bytes: changes.applyTo(request.body), omitted: changes.omitted };
}

function readReply(body: Uint8Array, _request: GenerationRequest, { publicModel }: Asked): Reply {
  const reply = parseReply(body);
  if (reply === null) return { kind: "fault", error: fault("the answer is not a JSON object") };
  if (reply.status === "failed" || (reply.error !== undefined && reply.error !== null)) {
    return { kind: "fault", error: errorOf(reply, "the response failed") };
  }
  if (!Array.isArray(reply.output)) return { kind: "fault", error: fault("the answer has no output") };
  let counted = 0;
  for (const item of reply.output) counted += countItem(asObject(item));
  return {
    kind: "reply",
    body: withModel(body, publicModel),
    usage: readOpenAiUsage(reply.usage),
    countedTokens: Math.ceil(counted),
  };
}

function countItem(item: Record<string, unknown> | null): number {
  if (item === null) return 0;
  const called = tokensOf(item.name) + tokensOf(item.arguments) + tokensOf(item.input);
  return called + countParts(item.content) + countParts(item.summary);
}

function countParts(parts: unknown): number {
  let counted = 0;
  if (!Array.isArray(parts)) return counted;
  for (const value of parts) {
    const part = asObject(value);
    counted += tokensOf(part?.text) + tokensOf(part?.refusal);
  }
  return counted;
}

/** Events whose `delta` the model wrote. Audio and code of built-in tools are billed by the host's own report. */
const WRITTEN: readonly string[] = [
  "response.output_text.delta",
  "response.reasoning_text.delta",
  "response.reasoning_summary_text.delta",
  "response.refusal.delta",
  "response.function_call_arguments.delta",
  "response.custom_tool_call_input.delta",
  "response.audio.transcript.delta",
  "response.code_interpreter_call_code.delta",
  "response.mcp_call_arguments.delta",
];

class ResponsesJudge extends PassingJudge {
  private sequence = -1;
  private response: Record<string, unknown> = {};

  fail({ message, code }: ErrorObject): Uint8Array {
    const response = {
      id: "resp_gateway",
      object: "response",
      created_at: 0,
      output: [],
      ...this.response,
      model: this.publicModel,
      status: "failed",
      error: { code, message },
    };
    const event = { type: "response.failed", sequence_number: this.sequence + 1, response };
    return encodeEvent("response.failed", event);
  }

  protected judge(event: CurrentEvent): void {
    const data = this.dataOf(event.data);
    if (data === null) return;
    const { type, sequence_number: sequence } = data;
    // The host's own words of its failure are not given on, so their number is free for ours.
    const given = type !== "response.failed" && type !== "error";
    if (given && typeof sequence === "number") this.sequence = sequence;
    switch (type) {
      case "response.created":
      case "response.in_progress":
      case "response.queued":
        this.response = asObject(data.response) ?? this.response;
        this.rename("response", event);
        return;
      case "response.output_item.added": {
        const item = asObject(data.item);
        this.wrote(item?.name);
        if (item?.type === "image_generation_call" || item?.type === "web_search_call") this.tokenSeen = true;
        return;
      }
      case "response.completed":
      case "response.incomplete":
        this.usage = readOpenAiUsage(asObject(data.response)?.usage);
        this.terminal = this.renamed(event);
        return;
      case "response.failed":
        this.usage = readOpenAiUsage(asObject(data.response)?.usage) ?? this.usage;
        this.fault = errorOf(data.response, "the response failed");
        return;
      case "error":
        this.fault = errorOf(data, "an error without a message");
        return;
      default:
        if (typeof type === "string" && WRITTEN.includes(type)) this.wrote(data.delta);
    }
  }

  protected judgeText(event: CurrentEvent): boolean {
    const { cursor } = this;
    let isDelta = false;
    let tokens = 0;
    let sequence = -1;
    cursor.begin(event.bytes, event.dataStart, event.dataEnd);
    cursor.enterObject();
    while (cursor.nextMember()) {
      if (cursor.isNamed("delta")) tokens = this.tokensAtCursor(event);
      else if (cursor.isNamed("sequence_number")) sequence = cursor.readCount();
      else if (cursor.isNamed("type")) {
        isDelta = this.isWritten();
        if (isDelta) cursor.skip();
        else cursor.giveUp();
      } else cursor.skipOther();
    }
    if (!cursor.isDone || !isDelta) return false;
    if (sequence !== -1) this.sequence = sequence;
    this.wroteTokens(tokens);
    return true;
  }

  private renamed(event: CurrentEvent): Uint8Array {
    if (!this.passModel("response", event)) return event.copy();
    const { start } = event;
    const { valueStart, at: valueEnd } = this.cursor;
    return replaceSpan(event.copy(), valueStart - start, valueEnd - start, this.modelJson);
  }

  private isWritten(): boolean {
    for (const type of WRITTEN) if (this.cursor.isTheText(type)) return true;
    return false;
  }
}
