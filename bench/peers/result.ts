import type { Quantiles, Spread } from "../figures.ts";

/** What is known of one peer after a run. Times are ms unless their name says otherwise. */
export interface PeerResult {
  readonly name: string;
  readonly version: string;
  readonly settings: string;
  /** CPU of all its processes. */
  readonly usPerRequest: Spread;
  readonly usPerEvent: Spread;
  /** Streams that were open at once while `usPerEvent` and `gapMs` were taken. */
  readonly streams: number;
  readonly requestsPerSecond: Spread;
  /** Requests for whole unstreamed answers, by connections. */
  readonly latencyMs: Readonly<Record<number, Quantiles>>;
  readonly firstByteMs: {
    /** 64 streams, first token at once. */
    readonly steady: Quantiles;
    /** 64 streams, first token after 300 ms, which are taken off. */
    readonly thinking: Quantiles;
    /** 64 connections at half of the streams a second that it can do. */
    readonly halfLoad: Quantiles & { readonly streamsPerSecond: number };
  };
  readonly gapMs: Quantiles;
  /** CPU of an event by kind of stream; only those that it has. */
  readonly usPerEventOf: Readonly<Record<string, Spread>>;
  /** CPU of an answer to a request of an agent, by size, kind and how many are open. */
  readonly usPerAgentsAnswer: Readonly<Record<string, Spread>>;
  /** CPU of a whole answer that the host streamed in 500 events; null where it does not assemble any. */
  readonly usPerAssembled: Spread | null;
  readonly memory: Memory | null;
  readonly faults: Faults | null;
}

export interface Memory {
  readonly idleBytes: number;
  /** At 1,000 and 8,000 open streams, each with an event a second. */
  readonly open: readonly OpenMemory[];
}

export interface OpenMemory {
  readonly streams: number;
  /** Null when so many could not be opened; `why` then says so. */
  readonly bytes: number | null;
  readonly why?: string;
}

export interface Faults {
  /** From being started again after a SIGKILL under load to the first 200. */
  readonly recoverMs: number;
  /** From the host listening again to the first 200. */
  readonly hostBackMs: number | null;
  readonly tooLarge: Flood | null;
  readonly badKey: Flood | null;
  /** The gap between events of 64 other streams, without and with a body of 10 MB every half second. */
  readonly largeBody: { readonly without: Quantiles; readonly with: Quantiles; readonly answered: string };
}

export interface Flood {
  readonly status: number;
  readonly perSecond: number;
  readonly usEach: number;
}
