import { LRUCache } from "lru-cache";
import type { Clock } from "../units/clock.ts";
import type { Candidate } from "./candidate.ts";
import type { ConversationId } from "./conversation.ts";

/**
 * Which host each conversation was last served by. That host holds the conversation's prompt cache, which
 * makes the next turn cheaper and faster, and it alone can read the reasoning signatures that it gave out.
 */
export class Affinity {
  private readonly routes = new LRUCache<ConversationId, StickyRoute>({ max: MAX_CONVERSATIONS });

  constructor(private readonly clock: Clock) {}

  stickyRoute(conversation: ConversationId): StickyRoute | null {
    const sticky = this.routes.get(conversation);
    return sticky === undefined || this.clock.elapsedMs() - sticky.atMs > FORGOTTEN_MS ? null : sticky;
  }

  served(conversation: ConversationId, { model, route }: Candidate): void {
    const atMs = this.clock.elapsedMs();
    this.routes.set(conversation, { model: model.id, host: route.host.id, hostModel: route.model, atMs });
  }
}

export interface StickyRoute {
  readonly model: string;
  readonly host: string;
  readonly hostModel: string;
  readonly atMs: number;
}

/** About 10 MB when full. */
const MAX_CONVERSATIONS = 50_000;
/** No host keeps a prompt cache for longer without being asked to. */
const FORGOTTEN_MS = 60 * 60_000;
