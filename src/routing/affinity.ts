import { boundedCache } from "../units/bounded-cache.ts";
import type { Clock } from "../units/clock.ts";
import type { Candidate, StickyRoute } from "./candidate.ts";
import type { ConversationId } from "./conversation.ts";

/**
 * Which host each conversation was last served by. That host holds the conversation's prompt cache, which makes the
 * next turn cheaper and faster, and it alone can read the reasoning signatures that it gave out. Where every process
 * begins with the same host anyway (`Plan.home`), nothing needs to be remembered; conversations that are elsewhere are
 * sent to the other processes, a batch at a time. All of it is a hint: what is forgotten or lost costs a cache.
 */
export class Affinity {
  private readonly stays = boundedCache<ConversationId, Stay>(MAX_CONVERSATIONS);
  private readonly untold = new Map<ConversationId, Stay>();
  private isTelling = false;

  constructor(
    private readonly clock: Clock,
    /** Other processes that serve the same customers; null where there are none. */
    private readonly tell: ((routes: readonly ToldRoute[]) => void | Promise<void>) | null = null,
  ) {}

  stickyRoute(conversation: ConversationId): StickyRoute | null {
    return this.stayOf(conversation)?.route ?? null;
  }

  /** The host keeps what it has cached of the conversation for `keptMs`. */
  served(conversation: ConversationId, candidate: Candidate, { isHome, keptMs }: ServedAt): void {
    // Home routes are not stored, and do not replace what another process has sent.
    if (isHome) return;
    const known = this.stayOf(conversation);
    const { model, route } = candidate;
    const nowMs = this.clock.elapsedMs();
    const isSame =
      known?.route.host === route.host.id &&
      known.route.hostModel === route.model &&
      known.route.model === model.id;
    const stay: Stay = {
      route: isSame ? known.route : { model: model.id, host: route.host.id, hostModel: route.model },
      keptMs,
      untilMs: nowMs + keptMs,
      toldMs: isSame ? known.toldMs : Number.NEGATIVE_INFINITY,
    };
    this.stays.set(conversation, stay);
    // The others would forget it before its next turn.
    if (nowMs - stay.toldMs > keptMs / 2) this.tellSoon(conversation, stay);
  }

  /** Another process has served these. */
  told(routes: readonly ToldRoute[]): void {
    const nowMs = this.clock.elapsedMs();
    for (const { conversation, keptMs, ...route } of routes)
      this.stays.set(conversation, { route, keptMs, untilMs: nowMs + keptMs, toldMs: nowMs });
  }

  private stayOf(conversation: ConversationId): Stay | null {
    const stay = this.stays.get(conversation);
    return stay === undefined || this.clock.elapsedMs() > stay.untilMs ? null : stay;
  }

  private tellSoon(conversation: ConversationId, stay: Stay): void {
    if (this.tell === null || this.untold.size >= MAX_UNTOLD) return;
    stay.toldMs = this.clock.elapsedMs();
    this.untold.set(conversation, stay);
    if (this.isTelling) return;
    this.isTelling = true;
    this.clock.after(TELL_AFTER_MS, () => void this.tellAll());
  }

  /** Never rejects; one batch is on its way at a time. */
  private async tellAll(): Promise<void> {
    const routes = [...this.untold].map(([conversation, { route, keptMs }]) => ({
      conversation,
      ...route,
      keptMs,
    }));
    this.untold.clear();
    try {
      await this.tell?.(routes);
    } catch {
      // The others send these conversations where they would have sent them anyway.
    }
    this.isTelling = this.untold.size > 0;
    if (this.isTelling) this.clock.after(TELL_AFTER_MS, () => void this.tellAll());
  }
}

/** What one process tells another. */
export interface ToldRoute extends StickyRoute {
  readonly conversation: ConversationId;
  readonly keptMs: number;
}

export interface ServedAt {
  /** Every process would have sent it there, and this one knew of no other place for it. */
  readonly isHome: boolean;
  readonly keptMs: number;
}

interface Stay {
  readonly route: StickyRoute;
  readonly keptMs: number;
  readonly untilMs: number;
  toldMs: number;
}

/** About 15 MB when full. */
const MAX_CONVERSATIONS = 50_000;
/** In one batch; the rest goes with the next. */
const MAX_UNTOLD = 1_000;
/** People and tools take longer between two turns. */
const TELL_AFTER_MS = 100;
