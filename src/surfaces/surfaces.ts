import type { SurfaceName } from "../catalog/catalog.ts";
import { chat, chatToChat } from "./chat.ts";
import { messages, messagesToMessages } from "./messages.ts";
import { responses, responsesToResponses } from "./responses.ts";
import type { Pairing, Surface } from "./surface.ts";

/** The three languages, by name. */
export const SURFACES: Readonly<Record<SurfaceName, Surface>> = {
  "chat.completions": chat,
  responses,
  messages,
};

const SAME_LANGUAGE: Readonly<Record<SurfaceName, Pairing>> = {
  "chat.completions": chatToChat,
  responses: responsesToResponses,
  messages: messagesToMessages,
};

/** How a client of one language is served by a host of another; null where it cannot be. */
export function pairing(client: SurfaceName, host: SurfaceName): Pairing | null {
  return client === host ? SAME_LANGUAGE[client] : null;
}
