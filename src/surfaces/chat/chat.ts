import { type ErrorObject, type Refusal, refused } from "../../errors/refusal.ts";
import { tokensOf } from "../../tokens/estimate.ts";
import { errorOf, fault, readHostError } from "../host-error.ts";
import { asObject } from "../json.ts";
import { type Collector, encodeEvent, PassingJudge } from "../judge.ts";
import { leaveOutOwnTools } from "../own-tools.ts";
import { parseReply, withModel } from "../reply.ts";
import {
  checkMessages,
  invalid,
  larger,
  leaveOutSeals,
  passedChanges,
  readBody,
  readCeiling,
  readChoices,
  toRequest,
} from "../request.ts";
import type { CurrentEvent } from "../sse.ts";
import type { Asked, GenerationRequest, HostBody, HostTarget, Pairing, Reply, Surface } from "../surface.ts";
import { readOpenAiUsage } from "../usage.ts";
import { brokeDown, forEachPart } from "./answer-reader.ts";
import { ChatCollector } from "./collector.ts";

/** OpenAI's Chat Completions (platform.openai.com, "Chat Completions", create and streaming). */
export const chat: Surface = {
  name: "chat.completions",
  path: "/chat/completions",
  readRequest,
  errorBody: (error) => Buffer.from(JSON.stringify({ error })),
  readHostError,
};

/** Chat client, chat host. */
export const chatToChat: Pairing = {
  hostBody,
  readReply,
  openStream: (request, { publicModel }) => new ChatJudge(publicModel, null, wantsUsage(request)),
  openWhole: (_request, { publicModel }) => new ChatJudge(publicModel, new ChatCollector(), true),
};

function readRequest(bytes: Uint8Array): GenerationRequest | Refusal {
  const read = readBody(bytes, "chat.completions");
  if (refused(read)) return read;
  const { json } = read;
  const ceiling = larger(readCeiling(json, "max_tokens"), readCeiling(json, "max_completion_tokens"));
  const choices = readChoices(json);
  const problem = checkMessages(json) ?? checkStreamOptions(json.stream_options);
  if (problem !== null) return problem;
  if (refused(ceiling)) return ceiling;
  return refused(choices) ? choices : toRequest(read, ceiling, choices);
}

function checkStreamOptions(options: unknown): Refusal | null {
  if (options === undefined || options === null) return null;
  const asked = asObject(options)?.include_usage;
  if (asObject(options) === null) return invalid("stream_options", "must be an object");
  const fine = asked === undefined || asked === null || typeof asked === "boolean";
  return fine ? null : invalid("stream_options.include_usage", "must be true or false");
}

function hostBody(request: GenerationRequest, target: HostTarget): HostBody | Refusal {
  const changes = passedChanges(request, target);
  const fee = leaveOutOwnTools(request, target, changes);
  if (fee !== null) return fee;
  if (target.stream && target.quirks.noStreamOptions !== true) {
    // Usage is what is billed by: always asked for, and withheld from a client that did not ask.
    changes.set(
      "stream_options",
      JSON.stringify({ ...asObject(request.json.stream_options), include_usage: true }),
    );
  } else if (target.quirks.noStreamOptions === true) changes.set("stream_options", null);
  if (target.maxOutputTokens !== null) {
    const field = target.quirks.maxCompletionTokens === true ? "max_completion_tokens" : "max_tokens";
    changes.set(field, String(target.maxOutputTokens));
  }
  leaveOutSeals(request, "messages", changes);
  return { bytes: changes.applyTo(request.body), omitted: changes.omitted };
}

const wantsUsage = ({ json }: GenerationRequest): boolean =>
  asObject(json.stream_options)?.include_usage === true;

function readReply(body: Uint8Array, _request: GenerationRequest, { publicModel }: Asked): Reply {
  const reply = parseReply(body);
  if (reply === null) return { kind: "fault", error: fault("the answer is not a JSON object") };
  if (reply.error !== undefined && reply.error !== null) {
    return { kind: "fault", error: errorOf(reply, "an error without a message") };
  }
  const choices = Array.isArray(reply.choices) ? reply.choices : [];
  if (choices.length === 0) return NO_CHOICES;
  let counted = 0;
  for (const choice of choices) {
    const given = asObject(choice);
    const reason = given?.finish_reason;
    if (brokeDown(reason)) return { kind: "fault", error: fault(`the host stopped with ${reason}`) };
    const message = asObject(given?.message);
    if (message === null) return NO_CHOICES;
    counted += tokensWritten(message);
  }
  return {
    kind: "reply",
    body: withModel(body, publicModel),
    usage: readOpenAiUsage(reply.usage),
    countedTokens: Math.ceil(counted),
  };
}

/** Clients look into the message of each, and another host may have one. */
const NO_CHOICES: Reply = { kind: "fault", error: fault("the answer has no choices") };

/** Everything that a model writes in a message or a delta: text, reasoning as its hosts spell it, refusals, tool calls. */
function tokensWritten(said: Record<string, unknown> | null): number {
  if (said === null) return 0;
  let tokens =
    tokensOfContent(said.content) +
    tokensOf(said.reasoning_content) +
    tokensOf(said.reasoning) +
    tokensOf(said.refusal) +
    tokensOf(asObject(said.audio)?.transcript);
  if (Array.isArray(said.tool_calls))
    for (const call of said.tool_calls) tokens += tokensCalled(asObject(call));
  const old = asObject(said.function_call);
  return tokens + tokensOf(old?.name) + tokensOf(old?.arguments);
}

function tokensOfContent(content: unknown): number {
  if (!Array.isArray(content)) return tokensOf(content);
  let tokens = 0;
  forEachPart(content, (_kind, text) => {
    tokens += tokensOf(text);
  });
  return tokens;
}

function tokensCalled(call: Record<string, unknown> | null): number {
  const called = asObject(call?.function);
  const custom = asObject(call?.custom);
  return (
    tokensOf(called?.name) + tokensOf(called?.arguments) + tokensOf(custom?.name) + tokensOf(custom?.input)
  );
}

class ChatJudge extends PassingJudge {
  private finished = false;
  /** The last chunk's own words for the one that ends a broken stream. */
  private id = "chatcmpl-gateway";
  private created = 0;

  constructor(
    publicModel: string,
    collector: Collector | null,
    private readonly wantsUsage: boolean,
  ) {
    super(publicModel, collector);
  }

  fail(error: ErrorObject): Uint8Array {
    const last = {
      id: this.id,
      object: "chat.completion.chunk",
      created: this.created,
      model: this.publicModel,
      choices: [{ index: 0, delta: {}, finish_reason: "error" }],
    };
    return Buffer.concat([encodeEvent(null, { error }), encodeEvent(null, last)]);
  }

  protected judge(event: CurrentEvent): void {
    const { data } = event;
    if (data === null) return;
    if (data.trim() === "[DONE]") {
      this.terminal = event.copy();
      return;
    }
    const chunk = this.dataOf(data);
    if (chunk === null) return;
    if (chunk.error !== undefined && chunk.error !== null) {
      this.fault = errorOf(chunk, "an error without a message");
      return;
    }
    this.note(chunk);
    if (this.fault === null) this.give(chunk, event);
  }

  /**
   * A chunk of text or arguments and nothing else, which is the way of nearly all, is read where it stands. False when it says more than
   * that. The first token's is read whole, for the words of `fail`.
   */
  protected judgeText(event: CurrentEvent): boolean {
    if (!this.tokenSeen) return false;
    const { cursor, edits } = this;
    let tokens = 0;
    let modelStart = 0;
    let modelEnd = 0;
    let usageStart = 0;
    let usageEnd = 0;
    cursor.begin(event.bytes, event.dataStart, event.dataEnd);
    cursor.enterObject();
    while (cursor.nextMember()) {
      if (cursor.isNamed("choices")) tokens = this.readChoices(event);
      else if (cursor.isNamed("model")) {
        const renames = cursor.isText && !cursor.isTheText(this.publicModel);
        modelStart = cursor.at;
        cursor.skip();
        modelEnd = renames ? cursor.at : 0;
      } else if (cursor.isNamed("usage")) {
        usageStart = cursor.comma;
        cursor.skipNull();
        usageEnd = cursor.at;
      } else if (cursor.isNamed("error")) cursor.skipNull();
      else cursor.skipOther();
    }
    if (!cursor.isDone || usageStart === -1) return false;
    this.wroteTokens(tokens);
    if (modelEnd > 0) edits.replace(modelStart, modelEnd, this.modelJson);
    // OpenAI puts a null into every chunk once usage is asked for, so this is the way of most of them.
    if (usageEnd > 0 && !this.wantsUsage) edits.leaveOut(usageStart, usageEnd);
    return true;
  }

  /** Tokens of all of them; a chunk without any is no text. */
  private readChoices(event: CurrentEvent): number {
    const { cursor } = this;
    let count = 0;
    let tokens = 0;
    cursor.enterArray();
    while (cursor.nextValue()) {
      count += 1;
      cursor.enterObject();
      while (cursor.nextMember()) {
        if (cursor.isNamed("delta")) tokens += this.readDelta(event);
        else if (cursor.isNamed("finish_reason")) cursor.skipNull();
        else cursor.skipOther();
      }
    }
    if (count === 0) cursor.giveUp();
    return tokens;
  }

  private readDelta(event: CurrentEvent): number {
    const { cursor } = this;
    let tokens = 0;
    cursor.enterObject();
    while (cursor.nextMember()) {
      if (cursor.isNamed("role")) cursor.skip();
      else if (
        cursor.isNamed("content") ||
        cursor.isNamed("reasoning_content") ||
        cursor.isNamed("reasoning")
      )
        tokens += this.tokensAtCursor(event);
      else if (cursor.isNamed("tool_calls") && cursor.isArray) tokens += this.readCalls(event);
      else cursor.skipNull();
    }
    return tokens;
  }

  /** Agents write more arguments than anything else. */
  private readCalls(event: CurrentEvent): number {
    const { cursor } = this;
    let tokens = 0;
    cursor.enterArray();
    while (cursor.nextValue()) {
      cursor.enterObject();
      while (cursor.nextMember()) {
        if (cursor.isNamed("function")) tokens += this.readFunction(event);
        else if (cursor.isNamed("custom")) cursor.giveUp();
        else cursor.skipOther();
      }
    }
    return tokens;
  }

  private readFunction(event: CurrentEvent): number {
    const { cursor } = this;
    let tokens = 0;
    cursor.enterObject();
    while (cursor.nextMember()) {
      if (cursor.isNamed("name") || cursor.isNamed("arguments")) tokens += this.tokensAtCursor(event);
      else cursor.skipOther();
    }
    return tokens;
  }

  /** A host may leave `[DONE]` out once it has given its reason to finish. */
  protected override closed(): void {
    if (this.finished) this.terminal = DONE;
    else super.closed();
  }

  private note(chunk: Record<string, unknown>): void {
    if (typeof chunk.id === "string") this.id = chunk.id;
    if (typeof chunk.created === "number") this.created = chunk.created;
    const usage = readOpenAiUsage(chunk.usage);
    if (usage !== null) this.usage = usage;
    if (!Array.isArray(chunk.choices)) return;
    for (const choice of chunk.choices) {
      const given = asObject(choice);
      const reason = given?.finish_reason;
      if (typeof reason === "string") this.finished = true;
      if (brokeDown(reason)) this.breakOff(`the host stopped with ${reason}`);
      this.wroteTokens(tokensWritten(asObject(given?.delta)));
    }
  }

  private give(chunk: Record<string, unknown>, event: CurrentEvent): void {
    const { edits, cursor } = this;
    const { bytes, start, end, dataStart, dataEnd } = event;
    const withholds = !this.wantsUsage && "usage" in chunk;
    if (withholds && Array.isArray(chunk.choices) && chunk.choices.length === 0) {
      edits.leaveOut(start, end);
      return;
    }
    const renames = typeof chunk.model === "string" && chunk.model !== this.publicModel;
    if (dataEnd === 0) {
      if (!withholds && !renames) return;
      const { usage, ...rest } = chunk;
      const given = { ...rest, ...(withholds ? {} : { usage }), model: this.publicModel };
      edits.replace(start, end, encodeEvent(null, given));
      return;
    }
    cursor.begin(bytes, dataStart, dataEnd);
    if (renames && cursor.passMember("model")) edits.replace(cursor.valueStart, cursor.at, this.modelJson);
    cursor.begin(bytes, dataStart, dataEnd);
    if (!withholds || !cursor.passMember("usage")) return;
    const { comma, memberStart } = cursor;
    if (comma === -1) edits.leaveOut(memberStart, cursor.nextMemberStart);
    else edits.leaveOut(comma, cursor.at);
  }
}

const DONE = Buffer.from("data: [DONE]\n\n");
