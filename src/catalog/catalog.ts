import type { NanoPerMillion } from "../units/usd.ts";

/** The three wire languages, spoken by clients to the gateway and by the gateway to hosts. */
export type SurfaceName = "chat.completions" | "responses" | "messages";

export const SURFACE_NAMES = ["chat.completions", "responses", "messages"] as const satisfies SurfaceName[];

/** An upstream host: a row of data. Nothing in the code names a provider; what is peculiar to one is in `quirks`. */
export interface Host {
  readonly id: string;
  /** Without a trailing slash; the surface's path is appended: `https://api.openai.com/v1`. */
  readonly baseUrl: string;
  readonly speaks: readonly SurfaceName[];
  readonly apiKey: string | null;
  readonly auth: "bearer" | "x-api-key";
  /** Sent with every request, lower-case names. */
  readonly headers: Readonly<Record<string, string>>;
  /** How the host bills a call that its caller leaves: stop it, or read it to its end. */
  readonly onDisconnect: "cancel" | "drain";
  readonly quirks: Quirks;
  /** Requests that it is given at once; absent means as many as the gateway takes (limits/host-slots). */
  readonly maxConcurrent?: number;
  /** Given no requests for now: models have no routes to it. */
  readonly paused?: boolean;
  /** What the operator knows of the host's handling of prompts; absent means that nothing is known. */
  readonly privacy?: Privacy;
}

/** Each is only true where the operator says so. */
export interface Privacy {
  /** The host neither keeps prompts for itself nor trains on them. */
  readonly collectsNothing: boolean;
  /** Zero data retention: nothing of a request is kept at all. */
  readonly retainsNothing: boolean;
}

/** What a host does differently from the documented form of its language. */
export interface Quirks {
  /** Refuses `stream_options`, or reports usage without being asked. */
  readonly noStreamOptions?: boolean;
  /** Cannot stream: a long answer is awaited whole. */
  readonly noStream?: boolean;
  /** Its chat knows the output ceiling under OpenAI's newer name only. */
  readonly maxCompletionTokens?: boolean;
  /** Its chat refuses fields that only OpenAI has, such as `prompt_cache_key`. */
  readonly coreFieldsOnly?: boolean;
  /** Its chat wants texts as one string, not as a list of parts. */
  readonly plainContent?: boolean;
  /** Its chat takes Anthropic's `cache_control` on parts. */
  readonly cacheControl?: boolean;
  /** Its chat wants earlier thoughts back as `reasoning_content`. */
  readonly takesReasoning?: boolean;
  /** Its chat signs tool calls, as Gemini 3 does, and refuses unsigned ones. */
  readonly signsCalls?: boolean;
  /** Its models think by effort (`thinking: adaptive`), not by a budget of tokens. */
  readonly adaptiveThinking?: boolean;
  /** Refuses to show summaries of thoughts. */
  readonly noReasoningSummary?: boolean;
  /** Its own tools may be used: what it charges for them is not counted. */
  readonly ownTools?: boolean;
}

export interface Price {
  readonly input: NanoPerMillion;
  readonly output: NanoPerMillion;
  readonly cacheRead: NanoPerMillion;
  readonly cacheWrite: NanoPerMillion;
  /** Of what is kept for an hour; absent: as `cacheWrite`. */
  readonly cacheWrite1h?: NanoPerMillion;
  /** Of sound in a prompt; absent: as `input`. */
  readonly audioInput?: NanoPerMillion;
  /** Of sound in an answer; absent: as `output`. */
  readonly audioOutput?: NanoPerMillion;
}

/** One way to reach a model: a host, and the model's name there. */
export interface Route {
  readonly host: Host;
  readonly model: string;
  /** The route's own price, or the model's; null when neither is known, and then it is never used for paid calls. */
  readonly price: Price | null;
  /** Open Tier only, and only while verified. */
  readonly free: boolean;
  /** The host's, with what is peculiar to this model there; absent means the host's. */
  readonly quirks?: Quirks;
  /** Absent: `unknown`. */
  readonly quantization?: Quantization;
  /** The request members that the host obeys here; absent: all that its language has. */
  readonly parameters?: ReadonlySet<string>;
}

/** Of a model's weights at a host; OpenRouter's names. */
export const QUANTIZATIONS = [
  "int4",
  "int8",
  "fp4",
  "fp6",
  "fp8",
  "fp16",
  "bf16",
  "fp32",
  "unknown",
] as const;
export type Quantization = (typeof QUANTIZATIONS)[number];

export interface Model {
  /** `<author>/<name>` */
  readonly id: string;
  readonly name: string;
  readonly contextLength: number;
  readonly maxOutputTokens: number;
  readonly price: Price | null;
  /** In order of preference; none while all of its hosts are paused. */
  readonly routes: readonly Route[];
}

/** What the gateway serves. Immutable: a reload builds another one. */
export interface Catalog {
  readonly models: ReadonlyMap<string, Model>;
  /** Variant → ordered model ids, for `gateway/auto:<variant>`. */
  readonly auto: ReadonlyMap<string, readonly string[]>;
  readonly hosts: ReadonlyMap<string, Host>;
}
