import type { LiveRoutes } from "../../hosts/route-report.ts";
import type { Throttled } from "../../ledger/limits/address.ts";
import type { RemoteRoute } from "../../routing/affinity.ts";
import type { HostRest } from "../../routing/health.ts";
import type { StoredReceipt } from "../../store/ledger/receipts.ts";
import type { Metric } from "../../telemetry/metric.ts";
import type { ReceiptId } from "../../units/id.ts";

/**
 * What a worker tells its supervisor. Both are of one build, so that nothing here is ever read by another
 * version.
 */
export type FromWorker =
  | Question<SupervisorQuery>
  | Answer<WorkerAnswers[keyof WorkerAnswers]>
  | { readonly kind: "given_back"; readonly throttled: Throttled; readonly block: string }
  | SlotsMessage
  | RestMessage
  | StaysMessage;

export interface Question<Query> {
  readonly kind: "question";
  readonly id: number;
  readonly query: Query;
}

export interface Answer<Content> {
  readonly kind: "answer";
  /** The question's. */
  readonly id: number;
  readonly answer: Content;
}

/** What a worker is asked: for its state, and for a receipt that may be in its memory. */
export type WorkerQuery =
  | { readonly about: "state" }
  | { readonly about: "receipt"; readonly receipt: ReceiptId };

export interface WorkerAnswers {
  readonly state: WorkerState;
  readonly receipt: StoredReceipt | null;
}

/** What a worker says of itself. */
export interface WorkerState {
  readonly metrics: readonly Metric[];
  readonly hosts: LiveRoutes;
}

/** About a host's limit of so many requests at once. */
export interface SlotsMessage {
  readonly kind: "slots_wanted" | "slots_returned";
  readonly host: string;
  readonly most: number;
  readonly count: number;
}

/** One worker has found out that a host should rest, and the others need not. */
interface RestMessage {
  readonly kind: "rests";
  readonly rest: HostRest;
}

/** Where one worker has served conversations that the others would send elsewhere. */
interface StaysMessage {
  readonly kind: "stays";
  readonly routes: readonly RemoteRoute[];
}

export type SupervisorQuery =
  | { readonly about: "metrics" }
  | { readonly about: "hosts" }
  /** In the memory of another worker. */
  | { readonly about: "receipt"; readonly receipt: ReceiptId }
  | {
      readonly about: "throttle";
      readonly throttled: Throttled;
      readonly block: string;
      readonly limit: number;
    };

/** What is answered to each question. */
export interface SupervisorAnswers {
  readonly metrics: readonly Metric[];
  readonly hosts: LiveRoutes;
  readonly receipt: StoredReceipt | null;
  /** Null: it was taken; or seconds until one is free. */
  readonly throttle: number | null;
}

/** What the supervisor tells a worker. */
export type ToWorker =
  /** To the keeper of the database, once all workers have ended. */
  | { readonly kind: "end" }
  | Question<WorkerQuery>
  | {
      readonly kind: "slots_granted" | "slots_recalled";
      readonly host: string;
      readonly most: number;
      readonly count: number;
    }
  | RestMessage
  | StaysMessage
  | Answer<SupervisorAnswers[keyof SupervisorAnswers]>;

/** A worker's end of the channel to its supervisor. */
export interface IpcChannel {
  send(message: FromWorker): void;
  listen(take: (message: ToWorker) => void): void;
}

/** The number of the process that keeps the database; those of workers begin at 1. */
export const KEEPER = 0;

/** How long the supervisor waits: a worker that is alive answers between two turns of its loop. */
export const ANSWER_MS = 500;
