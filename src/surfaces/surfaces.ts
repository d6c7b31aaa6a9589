import type { SurfaceName } from "../catalog/catalog.ts";
import { chat, chatToChat } from "./chat/chat.ts";
import { messages, messagesToMessages } from "./messages/messages.ts";
import { translation } from "./pairing/pairing.ts";
import { responses, responsesToResponses } from "./responses/responses.ts";
import type { Pairing, Surface } from "./surface.ts";

/** The three languages, by name. */
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

/** How a client of one language is served by a host of another. */
export const pairing = (client: SurfaceName, host: SurfaceName): Pairing => PAIRINGS[client][host];
