import { ANTHROPIC_MESSAGES } from "./anthropic-messages.ts";
import { COMPATIBLE_CHAT } from "./compatible-chat.ts";
import { OPENAI_CHAT } from "./openai-chat.ts";
import { OPENAI_RESPONSES } from "./openai-responses.ts";
import type { Transcript } from "./transcript.ts";

const named = (maker: string, transcripts: Readonly<Record<string, Transcript>>) =>
  Object.entries(transcripts).map(([name, one]) => [`${maker}: ${name}`, one] as const);

/** What the makers of the languages say themselves. */
export const OFFICIAL = [
  ...named("OpenAI chat", OPENAI_CHAT),
  ...named("OpenAI responses", OPENAI_RESPONSES),
  ...named("Anthropic", ANTHROPIC_MESSAGES),
];
/** What others say in their languages. */
export const ACCENTED = named("chat", COMPATIBLE_CHAT);
