import type { TextEvents } from "./events/sole-text.ts";
import type { Json } from "./json/json.ts";
import type { AnswerMetadata, GenerationRequest, Pairing, Surface, Usage } from "./surface.ts";
import type { AnswerEvents, AnswerReader } from "./vocabulary/answer-events.ts";
import type { AnswerWriter, CollectedAnswer } from "./vocabulary/answer-writer.ts";
import type { Conversation } from "./vocabulary/conversation.ts";
import type { ObjectReader } from "./vocabulary/object-reader.ts";
import type { TranslationReport } from "./vocabulary/translation-report.ts";

/** A surface with all that joins it to others: how it is passed on to hosts of its own, and said in the vocabulary. */
export interface Language extends Surface {
  /** Client and host speak it. */
  readonly passing: Pairing;
  readConversation(body: ObjectReader, json: Json): Conversation;
  writeConversation(conversation: Conversation, report: TranslationReport): Json;
  openReader(events: AnswerEvents, family: string, request: GenerationRequest): AnswerReader;
  readonly texts: TextEvents;
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
