import type { Json } from "../json/json.ts";
import { markMember, writeCacheOptions, writeWholeMark } from "../vocabulary/cache-marks.ts";
import type {
  AnswerFormat,
  AssistantPart,
  Conversation,
  FilePart,
  ReasoningPart,
  ReasoningSettings,
  TextPart,
  Tool,
  ToolChoice,
  ToolTurn,
  Turn,
  UserPart,
} from "../vocabulary/conversation.ts";
import { writeSchema } from "../vocabulary/members.ts";
import { effortFor, samplingFor } from "../vocabulary/reasoning.ts";
import { familyOf } from "../vocabulary/seal.ts";
import { DEFAULT_NAME, titledText, urlOf } from "../vocabulary/sources.ts";
import { MAX_SEQUENCE_LENGTH, MAX_SEQUENCES } from "../vocabulary/stop-cutter.ts";
import type { TranslationReport } from "../vocabulary/translation-report.ts";
import { ENCRYPTED, LOGPROBS } from "./request-reader.ts";

export function writeResponsesRequest(
  conversation: Conversation,
  report: TranslationReport,
): Record<string, unknown> {
  const { target } = report;
  const { tools, toolChoice, logprobs, reasoning } = conversation;
  const { temperature, topP } = samplingFor(conversation, report);
  checkStop(conversation.stop, report);
  const thinks = reasoning !== null && !reasoning.off && target.quirks.noReasoningEffort !== true;
  const include = [...(thinks ? [ENCRYPTED] : []), ...(logprobs === null ? [] : [LOGPROBS])];
  return {
    model: target.model,
    input: writeInput(conversation.turns, report),
    stream: target.stream ? true : undefined,
    // Absent means true at OpenAI, and the client could not fetch what is stored under the gateway's account
    // there.
    store: false,
    max_output_tokens: target.maxOutputTokens ?? conversation.maxOutputTokens ?? undefined,
    temperature: temperature ?? undefined,
    top_p: topP ?? undefined,
    tools: tools.length > 0 ? tools.map(writeTool) : undefined,
    tool_choice: tools.length > 0 ? writeToolChoice(toolChoice, tools) : undefined,
    parallel_tool_calls: tools.length > 0 ? (conversation.parallelToolCalls ?? undefined) : undefined,
    reasoning: writeReasoning(reasoning, report),
    text: writeText(conversation),
    include: include.length > 0 ? include : undefined,
    top_logprobs: logprobs === null || logprobs === 0 ? undefined : logprobs,
    ...conversation.openai,
    safety_identifier: conversation.user ?? undefined,
    prompt_cache_key: conversation.cacheKey ?? undefined,
    prompt_cache_options: writeCacheOptions(conversation, report),
    cache_control: writeWholeMark(conversation.cache, report),
  };
}

/** They are looked for here (stop-cutter), in every word. */
function checkStop(stop: readonly string[], report: TranslationReport): void {
  if (stop.length <= MAX_SEQUENCES && stop.every(({ length }) => length <= MAX_SEQUENCE_LENGTH)) return;
  const field = report.client === "messages" ? "stop_sequences" : "stop";
  report.cannot(
    field,
    `at most ${MAX_SEQUENCES} sequences of ${MAX_SEQUENCE_LENGTH} characters are looked for`,
  );
}

function writeInput(turns: readonly Turn[], report: TranslationReport): Json[] {
  const calls = turns.flatMap((turn) => (turn.role === "assistant" ? turn.parts : []));
  const custom = new Set(
    calls.flatMap((part) => (part.kind === "tool_call" && part.custom ? [part.id] : [])),
  );
  return turns.flatMap((turn, at) => writeTurn(turn, at, custom, report));
}

function writeTurn(turn: Turn, at: number, custom: ReadonlySet<string>, report: TranslationReport): Json[] {
  switch (turn.role) {
    case "assistant":
      return turn.parts.flatMap((part, n) => writeAssistantPart(part, `${at}_${n}`, report));
    case "tool":
      return [writeToolTurn(turn, custom.has(turn.callId), report)];
    default: {
      const content = turn.parts.map((part) => writePart(part, report));
      return content.length === 0 ? [] : [{ type: "message", role: turn.role, content }];
    }
  }
}

function writeToolTurn(
  { callId, parts, failed }: ToolTurn,
  custom: boolean,
  report: TranslationReport,
): Json {
  if (failed) report.omit("tool_result.is_error");
  const texts = parts.every(({ kind }) => kind === "text") ? (parts as readonly TextPart[]) : null;
  return {
    type: custom ? "custom_tool_call_output" : "function_call_output",
    call_id: callId,
    output:
      texts !== null && texts.length <= 1 && texts[0]?.cache == null
        ? (texts[0]?.text ?? "")
        : parts.map((part) => writePart(part, report)),
  };
}

function writePart(part: UserPart, report: TranslationReport): Json {
  const mark = markMember(part.cache, report);
  switch (part.kind) {
    case "text":
      return { type: "input_text", text: part.text, ...mark };
    case "image": {
      const { source, detail } = part;
      const url = urlOf(source);
      return { type: "input_image", image_url: url, detail: detail ?? "auto", ...mark };
    }
    case "file":
      return { ...writeFile(part), ...mark };
  }
}

function writeFile({ source, name }: FilePart): Json {
  switch (source.from) {
    case "text":
      return { type: "input_text", text: titledText(source, name) };
    case "url":
      return { type: "input_file", file_url: source.url, filename: name ?? undefined };
    case "base64":
      return {
        type: "input_file",
        filename: name ?? DEFAULT_NAME,
        file_data: urlOf(source),
      };
  }
}

function writeAssistantPart(part: AssistantPart, n: string, report: TranslationReport): Json[] {
  switch (part.kind) {
    case "text":
      return part.text === "" ? [] : [{ type: "message", role: "assistant", content: part.text }];
    case "refusal": {
      const content = [{ type: "refusal", refusal: part.text }];
      return [{ type: "message", id: `msg_${n}`, role: "assistant", status: "completed", content }];
    }
    case "reasoning":
      return writeThought(part, report);
    case "tool_call": {
      const { id, name, input, custom } = part;
      return [
        custom
          ? { type: "custom_tool_call", call_id: id, name, input }
          : { type: "function_call", call_id: id, name, arguments: input },
      ];
    }
  }
}

function writeThought({ text, seal }: ReasoningPart, report: TranslationReport): Json[] {
  const own = seal?.kind === "encrypted" && seal.family === familyOf("responses", report.target.publicModel);
  const space = own ? seal.data.indexOf(" ") : -1;
  if (space === -1) {
    report.omit("reasoning");
    return [];
  }
  return [
    {
      type: "reasoning",
      id: seal!.data.slice(0, space),
      summary: text === "" ? [] : [{ type: "summary_text", text }],
      encrypted_content: seal!.data.slice(space + 1),
    },
  ];
}

function writeTool(tool: Tool): Json {
  if (tool.kind === "custom") {
    const { name, description, format } = tool;
    return {
      type: "custom",
      name,
      description: description ?? undefined,
      format: format ?? undefined,
    };
  }
  const { name, description, parameters, strict } = tool;
  return {
    type: "function",
    name,
    description: description ?? undefined,
    parameters,
    // Absent means true here, and false in the other languages.
    strict: strict ?? false,
  };
}

function writeToolChoice(choice: ToolChoice | null, tools: readonly Tool[]): unknown {
  const kinds = new Map(tools.map(({ name, kind }) => [name, kind]));
  switch (choice?.kind) {
    case undefined:
      return undefined;
    case "named":
      return { type: kinds.get(choice.name) ?? "function", name: choice.name };
    case "allowed":
      return {
        type: "allowed_tools",
        mode: choice.mode,
        tools: choice.names.map((name) => ({ type: kinds.get(name) ?? "function", name })),
      };
    default:
      return choice!.kind;
  }
}

function writeReasoning(settings: ReasoningSettings | null, report: TranslationReport): Json | undefined {
  if (settings === null) return undefined;
  const effort = effortFor(settings, report);
  const shown = !(
    settings.off ||
    settings.summary === null ||
    report.target.quirks.noReasoningSummary ||
    report.target.quirks.noReasoningEffort
  );
  const reasoning = {
    ...(effort === null ? {} : { effort }),
    ...(shown ? { summary: settings.summary } : {}),
  };
  return Object.keys(reasoning).length > 0 ? reasoning : undefined;
}

function writeText({ format, verbosity }: Conversation): Json | undefined {
  if (format === null && verbosity === null) return undefined;
  return {
    format: format === null ? undefined : writeFormat(format),
    verbosity: verbosity ?? undefined,
  };
}

const writeFormat = (format: AnswerFormat): Json =>
  format.kind === "json_object" ? { type: "json_object" } : { type: "json_schema", ...writeSchema(format) };
