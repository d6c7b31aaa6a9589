import type { SurfaceName } from "../../src/catalog/catalog.ts";
import type {
  AssistantPart,
  Conversation,
  FilePart,
  ImagePart,
  TextPart,
  Tool,
  ToolChoice,
  Turn,
  UserPart,
} from "../../src/surfaces/vocabulary/conversation.ts";
import { EFFORTS } from "../../src/surfaces/vocabulary/conversation.ts";
import type { Random } from "../sim/random.ts";

/** A conversation that both languages can say: what one of them lacks is not drawn. */
export function randomConversation(random: Random, ...languages: readonly SurfaceName[]): Conversation {
  const all = (...names: SurfaceName[]) => languages.every((language) => names.includes(language));
  const openAi = all("chat.completions", "responses");
  const draw = { random, openAi, chat: languages.includes("chat.completions") };
  const tools = some(random, 3, (n) => randomTool(draw, n));
  const toolChoice = tools.length === 0 ? null : randomChoice(draw, tools);
  const stopping = all("chat.completions", "messages");
  return {
    turns: randomTurns(draw),
    tools,
    toolChoice,
    parallelToolCalls: randomParallel(draw, toolChoice),
    format: random.chance(0.3)
      ? {
          kind: "json_schema",
          name: openAi ? randomName(random) : "answer",
          description: openAi && random.chance(0.5) ? randomText(random) : null,
          schema: randomSchema(random),
          strict: true,
        }
      : null,
    maxOutputTokens: 1 + random.below(9_000),
    // Anthropic takes one of them.
    ...(random.chance(0.5)
      ? { temperature: maybe(random, () => random.below(11) / 10), topP: null }
      : { temperature: null, topP: maybe(random, () => random.below(11) / 10) }),
    topK: stopping ? maybe(random, () => 1 + random.below(99)) : null,
    stop: stopping ? some(random, 3, () => randomText(random)) : [],
    reasoning: openAi ? maybe(random, () => randomReasoning(random)) : null,
    verbosity: openAi ? maybe(random, () => random.pick(["low", "medium", "high"])) : null,
    logprobs: openAi ? maybe(random, () => random.below(5)) : null,
    user: maybe(random, () => randomName(random)),
    cacheKey: openAi ? maybe(random, () => randomName(random)) : null,
    cache: null,
    cacheOptions: null,
    openai: openAi && random.chance(0.3) ? { metadata: { [randomName(random)]: randomText(random) } } : {},
    chat: {},
  };
}

interface Draw {
  readonly random: Random;
  /** No part of it is Anthropic's. */
  readonly openAi: boolean;
  readonly chat: boolean;
}

function randomTurns(draw: Draw): Turn[] {
  const { random } = draw;
  const turns: Turn[] = random.chance(0.6) ? [{ role: "system", parts: texts(random) }] : [];
  for (let round = 0; round <= random.below(4); round++) {
    turns.push({ role: "user", parts: randomUserParts(draw) });
    if (random.chance(0.2)) turns.push({ role: "system", parts: texts(random) });
    turns.push(...randomAnswer(draw, `${round}`));
  }
  return [...turns, { role: "user", parts: randomUserParts(draw) }];
}

/** What the model said, and what its tools gave. */
function randomAnswer(draw: Draw, round: string): Turn[] {
  const { random } = draw;
  const parts: AssistantPart[] = random.chance(0.7) ? texts(random) : [];
  const calls = parts.length === 0 || random.chance(0.5) ? 1 + random.below(3) : 0;
  const ids = Array.from({ length: calls }, (_, n) => `call_${round}_${n}`);
  for (const id of ids)
    parts.push({
      kind: "tool_call",
      id,
      name: randomName(random),
      custom: false,
      input: JSON.stringify(randomSchema(random)),
      cache: null,
    });
  const results = ids.map(
    (callId): Turn => ({
      role: "tool",
      callId,
      // A tool's message holds text only in chat.
      parts: draw.chat ? texts(random) : randomUserParts(draw),
      failed: false,
      custom: false,
      cache: null,
    }),
  );
  return [{ role: "assistant", parts: parts }, ...results];
}

function randomUserParts(draw: Draw): UserPart[] {
  const { random } = draw;
  return Array.from({ length: 1 + random.below(3) }, () =>
    random.chance(0.7) ? text(random) : random.chance(0.5) ? randomImage(draw) : randomFile(draw),
  );
}

function randomImage({ random, openAi }: Draw): ImagePart {
  const source = random.chance(0.5) ? randomLink(random) : randomData(random, "image/png");
  return { kind: "image", source, detail: openAi ? random.pick(["auto", "low", "high"]) : null, cache: null };
}

function randomFile({ random, chat }: Draw): FilePart {
  const linked = !chat && random.chance(0.5);
  return {
    kind: "file",
    source: linked ? randomLink(random) : randomData(random, "application/pdf"),
    name: `${randomName(random)}.pdf`,
    cache: null,
  };
}

const randomLink = (random: Random) => ({
  from: "url" as const,
  url: `https://example.com/${randomName(random)}`,
});
const randomData = (random: Random, mediaType: string) => ({
  from: "base64" as const,
  mediaType,
  data: Buffer.from(random.bytes(new Uint8Array(1 + random.below(40)))).toString("base64"),
});

function randomTool({ random, openAi }: Draw, n: number): Tool {
  return {
    kind: "function",
    name: `${randomName(random)}_${n}`,
    description: maybe(random, () => randomText(random)),
    parameters: randomSchema(random),
    strict: random.chance(0.3) ? true : openAi ? false : null,
    cache: null,
  };
}

function randomChoice({ random, openAi }: Draw, tools: readonly Tool[]): ToolChoice | null {
  const { name } = random.pick(tools);
  const choices: (ToolChoice | null)[] = [
    null,
    { kind: "none" },
    { kind: "auto" },
    { kind: "required" },
    { kind: "named", name, custom: false },
  ];
  if (openAi) choices.push({ kind: "allowed", mode: random.pick(["auto", "required"]), names: [name] });
  return random.pick(choices);
}

/** Anthropic says it as a part of the choice, where there is one and it lets tools be called. */
function randomParallel({ random, openAi }: Draw, choice: ToolChoice | null): boolean | null {
  if (openAi) return choice === null ? null : random.pick([null, true, false]);
  return choice === null || choice.kind === "none" ? null : random.pick([null, false]);
}

const randomReasoning = (random: Random) => ({
  off: false,
  effort: random.pick(EFFORTS),
  budgetTokens: null,
  summary: null,
});

const randomSchema = (random: Random): Record<string, unknown> => ({
  type: "object",
  properties: Object.fromEntries(
    some(random, 4, () => [randomName(random), { description: randomText(random) }]),
  ),
  // An open one is closed on its way to Anthropic.
  additionalProperties: false,
});

const texts = (random: Random): TextPart[] => Array.from({ length: 1 + random.below(2) }, () => text(random));
const text = (random: Random): TextPart => ({ kind: "text", text: randomText(random), cache: null });

/** Words that JSON, UTF-16 and event streams each find hard. */
const WORDS = [
  "a",
  "Grüße",
  "🌍",
  "\n",
  "\n\n",
  "data: ",
  '"',
  "\\",
  "\u2028",
  "\u0000",
  "é",
  "日本",
  "{}",
  "[DONE]",
  " ",
];

export function randomText(random: Random): string {
  return `${Array.from({ length: random.below(6) }, () => random.pick(WORDS)).join("")}.`;
}

const randomName = (random: Random): string => `n${random.below(1_000_000).toString(36)}`;

const maybe = <T>(random: Random, draw: () => T): T | null => (random.chance(0.4) ? draw() : null);

const some = <T>(random: Random, most: number, draw: (n: number) => T): T[] =>
  Array.from({ length: random.below(most + 1) }, (_, n) => draw(n));
