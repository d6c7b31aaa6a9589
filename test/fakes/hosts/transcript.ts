import type { SurfaceName } from "../../../src/catalog/catalog.ts";

/**
 * What one kind of host says, in the wire form that its provider documents: as a stream, as a whole answer,
 * and what a person would say that it said. Clients of every language must receive the same story.
 */
export interface Transcript {
  /** The document that it is written after. */
  readonly from: string;
  readonly host: SurfaceName;
  /** Bytes of the stream, as text. */
  readonly stream: string;
  readonly whole: Readonly<Record<string, unknown>>;
  readonly story: Story;
}

export interface Story {
  readonly reasoning?: string;
  readonly text?: string;
  readonly refusal?: string;
  readonly calls?: readonly Call[];
  /**
   * `tools`: it waits for results; `sequence`: a stop sequence of the request; `filter`: it was stopped or
   * refused.
   */
  readonly end: "end" | "tools" | "length" | "sequence" | "filter";
  /** The host's own word for it, where its language has several. */
  readonly ending?: string;
  readonly sequence?: string;
  /** Disjoint but for `reasoning`, which is a part of `output`; null where the host reports nothing. */
  readonly usage: {
    readonly input: number;
    readonly cacheRead: number;
    readonly cacheWrite: number;
    readonly output: number;
    readonly reasoning: number;
  } | null;
}

interface Call {
  readonly name: string;
  /** Arguments as the model wrote them; the text of a freeform call. */
  readonly input: string;
  readonly custom?: true;
}

export const used = (input: number, output: number, more: Partial<NonNullable<Story["usage"]>> = {}) => ({
  input,
  cacheRead: 0,
  cacheWrite: 0,
  output,
  reasoning: 0,
  ...more,
});

/** Events without names; a string is a line as it stands, such as a comment. */
export const unnamed = (events: readonly (object | string)[]): string =>
  events
    .map((event) => (typeof event === "string" ? `${event}\n\n` : `data: ${JSON.stringify(event)}\n\n`))
    .join("");

/** Events that are named after their type. */
export const named = (events: readonly NamedEvent[]): string =>
  events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join("");

interface NamedEvent extends Readonly<Record<string, unknown>> {
  readonly type: string;
}
