import type { Usage } from "../surface.ts";
import type { Seal } from "./conversation.ts";

/**
 * A model's answer in no particular language: the answer half of the vocabulary. A host's reader calls these
 * in order, a client's writer turns them into its own frames: `start`, then blocks one after another (`open`,
 * `delta`s, `close`), then `stop`; `usage` whenever the host reports it. Calls instead of objects, because
 * there is one for every token.
 */
export interface AnswerEvents {
  /** `id` is the host's for the answer; usage is what it knew at the start. */
  start(id: string | null, usage: Usage | null): void;
  open(block: OpenBlock): void;
  /** More of the open block. */
  delta(text: string, logprobs?: readonly unknown[]): void;
  /** Of the open block, which is text. */
  cite(citation: Citation): void;
  /** A block of thoughts may have been sealed. */
  close(seal: Seal | null): void;
  usage(usage: Usage): void;
  stop(reason: StopReason, sequence: string | null): void;
}

export type OpenBlock =
  | { readonly kind: "text" | "refusal" | "reasoning" }
  | { readonly kind: "tool_call"; readonly id: string; readonly name: string; readonly custom: boolean };

/**
 * `end`: the model had said what it wanted; `tools`: it waits for results; `length`: the ceiling; `sequence`:
 * a stop sequence of the request; `filter`: the host's or the model's refusal to go on.
 */
export type StopReason = "end" | "tools" | "length" | "sequence" | "filter";

/** A page that a text rests on, and where in the text. */
export interface Citation {
  readonly url: string;
  readonly title: string;
  readonly start: number;
  readonly end: number;
}

/** Tells the next of everything. */
export class PassingEvents implements AnswerEvents {
  constructor(protected readonly next: AnswerEvents) {}

  start(id: string | null, usage: Usage | null): void {
    this.next.start(id, usage);
  }

  open(block: OpenBlock): void {
    this.next.open(block);
  }

  delta(text: string, logprobs?: readonly unknown[]): void {
    this.next.delta(text, logprobs);
  }

  cite(citation: Citation): void {
    this.next.cite(citation);
  }

  close(seal: Seal | null): void {
    this.next.close(seal);
  }

  usage(usage: Usage): void {
    this.next.usage(usage);
  }

  stop(reason: StopReason, sequence: string | null): void {
    this.next.stop(reason, sequence);
  }
}

/**
 * Keeps some of an answer to itself. `onSilence` is called now and then meanwhile, because proxies give a silent
 * connection up.
 */
export class WithholdingEvents extends PassingEvents {
  private unheard = 0;

  constructor(
    next: AnswerEvents,
    private readonly onSilence: () => void,
  ) {
    super(next);
  }

  /** A delta was not told. */
  protected withhold(): void {
    if (++this.unheard % DELTAS_PER_SIGN === 0) this.onSilence();
  }
}

/** Seconds of a slow model, far below the minute after which proxies give up. */
const DELTAS_PER_SIGN = 16;
