/**
 * A client's request in no particular language: the request half of the vocabulary that joins two surfaces
 * when client and host speak different ones. It holds what at least two of the three languages can express;
 * what only one can express never gets here, but is refused or left out by name (see ./fields).
 */
export interface Conversation {
  /** In the order in which they were said. */
  readonly turns: readonly Turn[];
  readonly tools: readonly Tool[];
  readonly toolChoice: ToolChoice | null;
  readonly parallelToolCalls: boolean | null;
  /** Null for plain text. */
  readonly format: AnswerFormat | null;
  readonly maxOutputTokens: number | null;
  readonly temperature: number | null;
  readonly topP: number | null;
  readonly topK: number | null;
  readonly stop: readonly string[];
  readonly reasoning: ReasoningSettings | null;
  readonly verbosity: string | null;
  /** How many alternatives to report for each token; null when no probabilities are asked for. */
  readonly logprobs: number | null;
  /** Names the client's own user to the host. */
  readonly user: string | null;
  /** Asks for the prompt to be cached. */
  readonly cacheKey: string | null;
  /** Asks for all of it to be cached, wherever its marks would stand (Anthropic's `cache_control` on the whole). */
  readonly cache: CacheMark;
  /** What the client says about OpenAI's cache as a whole; null where it says nothing. */
  readonly cacheOptions: CacheOptions | null;
  /** Members that OpenAI's two languages spell alike, as they came. */
  readonly openai: Readonly<Record<string, unknown>>;
  /** Members that only chat has, from a client of another language. */
  readonly chat: Readonly<Record<string, unknown>>;
}

export type Turn =
  | { readonly role: "system" | "developer"; readonly parts: readonly TextPart[] }
  | { readonly role: "user"; readonly parts: readonly UserPart[] }
  | { readonly role: "assistant"; readonly parts: readonly AssistantPart[] }
  | ToolTurn;

export interface ToolTurn {
  readonly role: "tool";
  readonly callId: string;
  readonly parts: readonly UserPart[];
  readonly failed: boolean;
  readonly custom: boolean;
  readonly cache: CacheMark;
}

export type UserPart = TextPart | ImagePart | FilePart;
export type AssistantPart = TextPart | RefusalPart | ReasoningPart | ToolCallPart;

export interface TextPart {
  readonly kind: "text";
  readonly text: string;
  readonly cache: CacheMark;
}

export interface ImagePart {
  readonly kind: "image";
  readonly source: LinkedSource | EmbeddedSource;
  readonly detail: string | null;
  readonly cache: CacheMark;
}

export interface FilePart {
  readonly kind: "file";
  readonly source: LinkedSource | EmbeddedSource | PlainSource;
  readonly name: string | null;
  readonly cache: CacheMark;
}

export interface LinkedSource {
  readonly from: "url";
  readonly url: string;
}

export interface EmbeddedSource {
  readonly from: "base64";
  readonly mediaType: string;
  readonly data: string;
}

export interface PlainSource {
  readonly from: "text";
  readonly text: string;
}

interface RefusalPart {
  readonly kind: "refusal";
  readonly text: string;
}

/** Thoughts of the model, readable or not. */
export interface ReasoningPart {
  readonly kind: "reasoning";
  /** Empty where only the seal is there. */
  readonly text: string;
  readonly seal: Seal | null;
}

/**
 * What a host adds to its thoughts so that it recognises them: a signature, or the thoughts themselves
 * encrypted. Only the family that made it can read it; any other would refuse the whole request.
 */
export interface Seal {
  /**
   * Who made it, as seal/`familyOf` names it; null for one in the client's own language: no host of another
   * reads it.
   */
  readonly family: string | null;
  /** `call`: Gemini signs not its thoughts but the call that they led to, which comes next. */
  readonly kind: "signature" | "redacted" | "encrypted" | "call";
  readonly data: string;
}

export interface ToolCallPart {
  readonly kind: "tool_call";
  readonly id: string;
  readonly name: string;
  /** A freeform tool: `input` is its text. For a function it is JSON. */
  readonly custom: boolean;
  readonly input: string;
  readonly cache: CacheMark;
}

/**
 * The prompt up to here is to be cached, for so long from its last use on; null where nothing is marked. Anthropic has
 * `5m` and `1h` (`cache_control`), OpenAI `30m` and `12h` (`prompt_cache_breakpoint`).
 */
export type CacheMark = MarkRetention | null;
export type MarkRetention = "5m" | "30m" | "1h" | "12h";

export interface CacheOptions {
  /** `explicit`: nothing but what is marked is to be cached. Null leaves it to the host, which also caches the newest message. */
  readonly mode: "implicit" | "explicit" | null;
  readonly retention: MarkRetention | null;
}

export type Tool = FunctionTool | CustomTool;

interface FunctionTool {
  readonly kind: "function";
  readonly name: string;
  readonly description: string | null;
  /** JSON schema of its arguments. */
  readonly parameters: Readonly<Record<string, unknown>>;
  readonly strict: boolean | null;
  readonly cache: CacheMark;
}

/** A freeform tool, whose input is text, perhaps of a grammar. */
export interface CustomTool {
  readonly kind: "custom";
  readonly name: string;
  readonly description: string | null;
  readonly format: Readonly<Record<string, unknown>> | null;
}

export type ToolChoice =
  | { readonly kind: "none" | "auto" | "required" }
  | { readonly kind: "named"; readonly name: string; readonly custom: boolean }
  | {
      readonly kind: "allowed";
      readonly mode: "auto" | "required";
      readonly names: readonly string[];
    };

export type AnswerFormat = { readonly kind: "json_object" } | JsonSchemaFormat;

export interface JsonSchemaFormat {
  readonly kind: "json_schema";
  readonly name: string | null;
  readonly description: string | null;
  readonly schema: Readonly<Record<string, unknown>>;
  readonly strict: boolean | null;
}

/** Absent members were not named. */
export interface ReasoningSettings {
  readonly off: boolean;
  readonly effort: Effort | null;
  readonly budgetTokens: number | null;
  /** Whether thoughts are to be shown; null leaves it to the host. */
  readonly summary: string | null;
}

/** From the least to the most. */
export const EFFORTS = ["minimal", "low", "medium", "high", "xhigh", "max"] as const;
export type Effort = (typeof EFFORTS)[number];

export const isEffort = (value: unknown): value is Effort => EFFORTS.includes(value as Effort);
