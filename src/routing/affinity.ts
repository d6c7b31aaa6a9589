import { LRUCache } from "lru-cache";
import type { Clock } from "../units/clock.ts";
import type { Conversation } from "./conversation.ts";
import type { Stop } from "./stop.ts";

/**
 * Which host each conversation was last served by. That host holds the conversation's prompt cache, which
 * makes the next turn cheaper and faster, and it alone can read the reasoning signatures that it gave out.
 */
export class Affinity {
  private readonly homes = new LRUCache<Conversation, Home>({ max: MAX_CONVERSATIONS });

  constructor(private readonly clock: Clock) {}

  home(conversation: Conversation): Home | null {
    const home = this.homes.get(conversation);
    return home === undefined || this.clock.elapsedMs() - home.atMs > FORGOTTEN_MS ? null : home;
  }

  served(conversation: Conversation, { model, route }: Stop): void {
    const atMs = this.clock.elapsedMs();
    this.homes.set(conversation, { model: model.id, host: route.host.id, hostModel: route.model, atMs });
  }
}

export interface Home {
  readonly model: string;
  readonly host: string;
  readonly hostModel: string;
  readonly atMs: number;
}

/** About 10 MB when full. */
const MAX_CONVERSATIONS = 50_000;
/** No host keeps a prompt cache for longer without being asked to. */
const FORGOTTEN_MS = 60 * 60_000;
