import { boundedCache } from "../units/bounded-cache.ts";
import type { Clock } from "../units/clock.ts";
import type { Candidate, StickyRoute } from "./candidate.ts";
import type { ConversationId } from "./conversation.ts";

/**
 * Sticky routes: the host that last served each conversation. It has the conversation's prompt cache, which makes the next turn
 * cheaper and faster, and only it can read its reasoning signatures. Conversations at the host with which every process would
 * begin (`Plan.home`) are not remembered; others are sent to the other processes in batches. A lost entry costs only a cache.
 */
export class Affinity {
  private readonly entries = boundedCache<ConversationId, AffinityEntry>(MAX_CONVERSATIONS);
  private readonly pending = new Map<ConversationId, AffinityEntry>();
  private isScheduled = false;

  constructor(
    private readonly clock: Clock,
    /** Sends to the other processes of the store; null if there are none. */
    private readonly send: ((routes: readonly RemoteRoute[]) => void | Promise<void>) | null = null,
  ) {}

  stickyRoute(conversation: ConversationId): StickyRoute | null {
    return this.entryOf(conversation)?.route ?? null;
  }

  /** Remembers the host, which keeps its cache of the conversation for `keptMs`. */
  served(conversation: ConversationId, candidate: Candidate, { isHome, keptMs }: ServedAt): void {
    // Home routes are not stored, and do not replace what another process has sent.
    if (isHome) return;
    const known = this.entryOf(conversation);
    const { model, route } = candidate;
    const nowMs = this.clock.elapsedMs();
    const isSame =
      known?.route.host === route.host.id &&
      known.route.hostModel === route.model &&
      known.route.model === model.id;
    const entry: AffinityEntry = {
      route: isSame ? known.route : { model: model.id, host: route.host.id, hostModel: route.model },
      keptMs,
      untilMs: nowMs + keptMs,
      sentMs: isSame ? known.sentMs : Number.NEGATIVE_INFINITY,
    };
    this.entries.set(conversation, entry);
    // Other processes would forget it before the next turn.
    if (nowMs - entry.sentMs > keptMs / 2) this.scheduleBroadcast(conversation, entry);
  }

  /** Applies routes that another process sent. */
  onRemoteRoutes(routes: readonly RemoteRoute[]): void {
    const nowMs = this.clock.elapsedMs();
    for (const { conversation, keptMs, ...route } of routes)
      this.entries.set(conversation, { route, keptMs, untilMs: nowMs + keptMs, sentMs: nowMs });
  }

  private entryOf(conversation: ConversationId): AffinityEntry | null {
    const entry = this.entries.get(conversation);
    return entry === undefined || this.clock.elapsedMs() > entry.untilMs ? null : entry;
  }

  private scheduleBroadcast(conversation: ConversationId, entry: AffinityEntry): void {
    if (this.send === null || this.pending.size >= MAX_PENDING) return;
    entry.sentMs = this.clock.elapsedMs();
    this.pending.set(conversation, entry);
    if (this.isScheduled) return;
    this.isScheduled = true;
    this.clock.after(BROADCAST_AFTER_MS, () => void this.broadcast());
  }

  /** Sends one batch at a time; never rejects. */
  private async broadcast(): Promise<void> {
    const routes = [...this.pending].map(([conversation, { route, keptMs }]) => ({
      conversation,
      ...route,
      keptMs,
    }));
    this.pending.clear();
    try {
      await this.send?.(routes);
    } catch {
      // If a batch is lost, the others send these conversations to their home routes.
    }
    this.isScheduled = this.pending.size > 0;
    if (this.isScheduled) this.clock.after(BROADCAST_AFTER_MS, () => void this.broadcast());
  }
}

/** A sticky route as processes send it to each other. */
export interface RemoteRoute extends StickyRoute {
  readonly conversation: ConversationId;
  readonly keptMs: number;
}

export interface ServedAt {
  /** Every process would have sent it there by itself. */
  readonly isHome: boolean;
  readonly keptMs: number;
}

interface AffinityEntry {
  readonly route: StickyRoute;
  readonly keptMs: number;
  readonly untilMs: number;
  sentMs: number;
}

/** About 15 MB when full. */
const MAX_CONVERSATIONS = 50_000;
/** In one batch; the rest goes with the next. */
const MAX_PENDING = 1_000;
/** People and tools take longer between two turns. */
const BROADCAST_AFTER_MS = 100;
