import type { LiveRoutes } from "../../hosts/route-report.ts";
import type { Throttled } from "../../ledger/limits/address.ts";
import type { RemoteRoute } from "../../routing/affinity.ts";
import type { HostRest } from "../../routing/health.ts";
import type { StoredReceipt } from "../../store/ledger/receipts.ts";
import type { Metric } from "../../telemetry/metric.ts";
import type { ReceiptId } from "../../units/id.ts";
import type { Answer, Question } from "./questions.ts";

/**
 * What a worker tells its supervisor. Both are of one build, so that nothing here is ever read by another
 * version.
 */
export type FromWorker =
  | Question<SupervisorQueries>
  | Answer
  | { readonly kind: "given_back"; readonly throttled: Throttled; readonly block: string }
  | SlotsMessage<"slots_wanted" | "slots_returned">
  | RestMessage
  | StaysMessage;

/** What a worker says of itself. */
export interface WorkerState {
  readonly metrics: readonly Metric[];
  readonly hosts: LiveRoutes;
}

/** About a host's limit of so many requests at once. */
export interface SlotsMessage<Kind> {
  readonly kind: Kind;
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

/** What a worker may ask its supervisor. */
export interface SupervisorQueries {
  metrics(): Promise<readonly Metric[]>;
  hosts(): Promise<LiveRoutes>;
  /** In the memory of another worker. */
  receipt(id: ReceiptId): Promise<StoredReceipt | null>;
  /** Null: it was taken; or seconds until one is free. */
  throttle(throttled: Throttled, block: string, limit: number): number | null;
}

/** What the supervisor may ask a worker: for its state, and for a receipt that may be in its memory. */
export interface WorkerQueries {
  state(): WorkerState;
  receipt(id: ReceiptId): StoredReceipt | null;
}

/** What the supervisor tells a worker. */
export type ToWorker =
  /** To the keeper of the database, once all workers have ended. */
  | { readonly kind: "end" }
  | Question<WorkerQueries>
  | Answer
  | SlotsMessage<"slots_granted" | "slots_recalled">
  | RestMessage
  | StaysMessage;

/** A worker's end of the channel to its supervisor. */
export interface IpcChannel {
  send(message: FromWorker): void;
  listen(take: (message: ToWorker) => void): void;
}

/** The number of the process that keeps the database; those of workers begin at 1. */
export const KEEPER = 0;

/** How long the supervisor waits: a worker that is alive answers between two turns of its loop. */
export const ANSWER_MS = 500;
