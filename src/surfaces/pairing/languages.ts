import type { SurfaceName } from "../../catalog/catalog.ts";
import { ChatReader, ceilingOf } from "../chat/answer-reader.ts";
import { ChatWriter, writeChatAnswer } from "../chat/answer-writer.ts";
import { chat } from "../chat/chat.ts";
import { wantsUsage } from "../chat/openrouter-words.ts";
import { readChatRequest } from "../chat/request-reader.ts";
import { writeChatRequest } from "../chat/request-writer.ts";
import { CHAT_TEXTS } from "../chat/text-events.ts";
import type { TextEvents } from "../events/sole-text.ts";
import type { Json } from "../json/json.ts";
import { MessagesReader } from "../messages/answer-reader.ts";
import { MessagesWriter, writeMessagesAnswer } from "../messages/answer-writer.ts";
import { messages } from "../messages/messages.ts";
import { readMessagesRequest } from "../messages/request-reader.ts";
import { writeMessagesRequest } from "../messages/request-writer.ts";
import { MESSAGES_TEXTS } from "../messages/text-events.ts";
import { ResponsesReader } from "../responses/answer-reader.ts";
import { itemForm, ResponsesWriter, writeResponsesAnswer } from "../responses/answer-writer.ts";
import { readResponsesRequest } from "../responses/request-reader.ts";
import { writeResponsesRequest } from "../responses/request-writer.ts";
import { responses } from "../responses/responses.ts";
import { RESPONSES_TEXTS } from "../responses/text-events.ts";
import type { AnswerMetadata, GenerationRequest, Surface, Usage } from "../surface.ts";
import type { AnswerEvents, AnswerReader } from "../vocabulary/answer-events.ts";
import type { AnswerWriter, CollectedAnswer } from "../vocabulary/answer-writer.ts";
import type { Conversation } from "../vocabulary/conversation.ts";
import type { ObjectReader } from "../vocabulary/object-reader.ts";
import type { TranslationReport } from "../vocabulary/translation-report.ts";

/** What the vocabulary is spoken with, by language. */
export interface Language {
  readonly name: SurfaceName;
  readRequest(body: ObjectReader, json: Json): Conversation;
  writeRequest(conversation: Conversation, report: TranslationReport): Json;
  openReader(events: AnswerEvents, family: string, request: GenerationRequest): AnswerReader;
  readonly texts: TextEvents;
  /** A whole answer as a stream, which is read like any other. */
  readonly synthesizeStream: Surface["synthesizeStream"];
  openWriter(request: GenerationRequest, metadata: AnswerMetadata, hostFamily: string): AnswerWriter;
  writeAnswer(
    answer: CollectedAnswer,
    usage: Usage,
    request: GenerationRequest,
    metadata: AnswerMetadata,
    hostFamily: string,
  ): Json;
  /** Its hosts call functions only: freeform tools are wrapped. */
  readonly wrapsCustomTools: boolean;
}

export const LANGUAGES: Readonly<Record<SurfaceName, Language>> = {
  "chat.completions": {
    name: "chat.completions",
    readRequest: readChatRequest,
    writeRequest: writeChatRequest,
    openReader: (events, family, request) => new ChatReader(events, family, ceilingOf(request)),
    texts: CHAT_TEXTS,
    synthesizeStream: chat.synthesizeStream,
    openWriter: ({ json }, metadata) => new ChatWriter(metadata, wantsUsage(json)),
    writeAnswer: (answer, usage, _request, metadata) => writeChatAnswer(answer, usage, metadata),
    wrapsCustomTools: true,
  },
  responses: {
    name: "responses",
    readRequest: readResponsesRequest,
    writeRequest: writeResponsesRequest,
    openReader: (events, family) => new ResponsesReader(events, family),
    texts: RESPONSES_TEXTS,
    synthesizeStream: responses.synthesizeStream,
    // Every event repeats the request, but for its prompt.
    openWriter: ({ json }, metadata) =>
      new ResponsesWriter({ ...json, input: undefined }, metadata, itemForm(json)),
    writeAnswer: (answer, usage, { json }, metadata) => writeResponsesAnswer(answer, usage, json, metadata),
    wrapsCustomTools: false,
  },
  messages: {
    name: "messages",
    readRequest: readMessagesRequest,
    writeRequest: writeMessagesRequest,
    openReader: (events, family) => new MessagesReader(events, family),
    texts: MESSAGES_TEXTS,
    synthesizeStream: messages.synthesizeStream,
    openWriter: ({ promptEstimate }, metadata, family) =>
      new MessagesWriter(metadata, family, promptEstimate),
    writeAnswer: (answer, usage, _request, metadata, family) =>
      writeMessagesAnswer(answer, usage, metadata, family),
    wrapsCustomTools: true,
  },
};
