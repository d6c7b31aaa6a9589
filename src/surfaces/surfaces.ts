import type { SurfaceName } from "../catalog/catalog.ts";
import { chat } from "./chat/chat.ts";
import type { Language } from "./language.ts";
import { messages } from "./messages/messages.ts";
import { translation } from "./pairing/pairing.ts";
import { responses } from "./responses/responses.ts";
import type { Pairing } from "./surface.ts";

export const SURFACES: Readonly<Record<SurfaceName, Language>> = {
  "chat.completions": chat,
  responses,
  messages,
};

const pairingsOf = (client: Language): Readonly<Record<SurfaceName, Pairing>> => ({
  "chat.completions": paired(client, chat),
  responses: paired(client, responses),
  messages: paired(client, messages),
});

const paired = (client: Language, host: Language): Pairing =>
  client === host ? client.passing : translation(client, host);

/** By the client's language, then by the host's. */
const PAIRINGS: Readonly<Record<SurfaceName, Readonly<Record<SurfaceName, Pairing>>>> = {
  "chat.completions": pairingsOf(chat),
  responses: pairingsOf(responses),
  messages: pairingsOf(messages),
};

export const pairing = (client: SurfaceName, host: SurfaceName): Pairing => PAIRINGS[client][host];
