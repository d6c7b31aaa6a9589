import type { SurfaceName } from "../catalog/catalog.ts";
import type { ErrorObject } from "../units/errors/refusal.ts";
import { chat, chatToChat } from "./chat/chat.ts";
import { ChatJudge } from "./chat/judge.ts";
import { MessagesJudge } from "./messages/judge.ts";
import { messages, messagesToMessages } from "./messages/messages.ts";
import { translation } from "./pairing/pairing.ts";
import { ResponsesJudge } from "./responses/judge.ts";
import { responses, responsesToResponses } from "./responses/responses.ts";
import type { Pairing, Surface } from "./surface.ts";

export const SURFACES: Readonly<Record<SurfaceName, Surface>> = {
  "chat.completions": chat,
  responses,
  messages,
};

/** By the client's language, then by the host's. */
const PAIRINGS: Readonly<Record<SurfaceName, Readonly<Record<SurfaceName, Pairing>>>> = {
  "chat.completions": {
    "chat.completions": chatToChat,
    responses: translation("chat.completions", "responses"),
    messages: translation("chat.completions", "messages"),
  },
  responses: {
    "chat.completions": translation("responses", "chat.completions"),
    responses: responsesToResponses,
    messages: translation("responses", "messages"),
  },
  messages: {
    "chat.completions": translation("messages", "chat.completions"),
    responses: translation("messages", "responses"),
    messages: messagesToMessages,
  },
};

/** The end of a stream of which no more is known than its language. */
export const BROKEN_OFF: Readonly<Record<SurfaceName, (error: ErrorObject) => Uint8Array>> = {
  "chat.completions": (error) => new ChatJudge("", null, false).fail(error, null),
  responses: (error) => new ResponsesJudge("", null).fail(error, null),
  messages: (error) => new MessagesJudge("", null).fail(error, null),
};

export const pairing = (client: SurfaceName, host: SurfaceName): Pairing => PAIRINGS[client][host];
