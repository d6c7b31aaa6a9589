import { LRUCache } from "lru-cache";
import { contains, textOf } from "../bytes.ts";
import { parseObject } from "../json.ts";

/**
 * The conversations of all WebSockets, in so many bytes: those that were continued longest ago are forgotten first. Their
 * clients are told that the response was not found, and send their conversation whole, as after a lost connection.
 */
export class ConversationMemory {
  private readonly kept: LRUCache<LaneState, readonly Uint8Array[]>;

  constructor(mostBytes: number) {
    this.kept = new LRUCache({ maxSize: mostBytes, sizeCalculation: (items) => sizeOf(items) + OVERHEAD });
  }

  get bytes(): number {
    return this.kept.calculatedSize;
  }

  keep(lane: LaneState, items: readonly Uint8Array[]): void {
    this.kept.set(lane, items);
  }

  of(lane: LaneState): readonly Uint8Array[] | null {
    return this.kept.get(lane) ?? null;
  }

  forget(lane: LaneState): void {
    this.kept.delete(lane);
  }
}

/** Of a conversation without a word. */
const OVERHEAD = 512;

export const sizeOf = (items: readonly Uint8Array[]): number =>
  items.reduce((sum, { length }) => sum + length + 1, 0);

/** A lane and its most recent response. */
interface LaneState {
  responseId: string | null;
}

/** The lanes of a connection: each knows the conversation up to its most recent response. */
export class Lanes {
  private readonly lanes = new Map<string | null, LaneState>();

  constructor(private readonly memory: ConversationMemory) {}

  /** Whether there is a place for this lane. */
  admits(name: string | null): boolean {
    if (name === null || this.lanes.has(name)) return true;
    if (this.lanes.size - (this.lanes.has(null) ? 1 : 0) >= MOST_LANES) return false;
    this.lanes.set(name, { responseId: null });
    return true;
  }

  /** The items up to that response, and whose it is: the lane's own, before another's. Null where it is not known. */
  find(responseId: string, name: string | null): readonly Uint8Array[] | null {
    const own = this.lanes.get(name);
    if (own?.responseId === responseId) return this.memory.of(own);
    for (const lane of this.lanes.values()) if (lane.responseId === responseId) return this.memory.of(lane);
    return null;
  }

  keep(name: string | null, responseId: string, items: readonly Uint8Array[]): void {
    let lane = this.lanes.get(name);
    if (lane === undefined) this.lanes.set(name, (lane = { responseId }));
    lane.responseId = responseId;
    this.memory.keep(lane, items.slice(lastCompaction(items)));
  }

  /** A continuation within the lane failed: what it continued is forgotten. Other lanes keep theirs. */
  failed(name: string | null, responseId: string): void {
    const lane = this.lanes.get(name);
    if (lane?.responseId === responseId) this.forget(lane);
  }

  close(): void {
    for (const lane of this.lanes.values()) this.forget(lane);
    this.lanes.clear();
  }

  private forget(lane: LaneState): void {
    lane.responseId = null;
    this.memory.forget(lane);
  }
}

/** Where a conversation begins that was shortened: what stands before the item that sums it up is not sent again. */
function lastCompaction(items: readonly Uint8Array[]): number {
  for (let at = items.length - 1; at > 0; at--) {
    const item = items[at]!;
    if (!contains(item, COMPACTION)) continue;
    if (parseObject(textOf(item, 0, item.length))?.type === "compaction") return at;
  }
  return 0;
}

const COMPACTION = Buffer.from('"compaction"');

/** Named ones. */
export const MOST_LANES = 32;
