import { contains, textOf } from "../json/bytes.ts";
import { parseObject } from "../json/json.ts";

/**
 * The conversations of all WebSockets, in so many bytes. The balance that has the most loses those first that were
 * continued longest ago, so nobody displaces those of others by keeping many. Their clients get an error that the
 * response was not found, and send their conversation whole, as after a lost connection.
 */
export class ConversationMemory {
  bytes = 0;
  private readonly owners = new Map<string, OwnersConversations>();

  constructor(private readonly mostBytes: number) {}

  keep(lane: LaneState, items: readonly Uint8Array[]): void {
    this.forget(lane);
    const bytes = sizeOf(items) + OVERHEAD;
    const own = this.owners.getOrInsertComputed(lane.owner, () => ({ bytes: 0, lanes: new Map() }));
    own.lanes.set(lane, { items, bytes });
    own.bytes += bytes;
    this.bytes += bytes;
    while (this.bytes > this.mostBytes) this.forgetOne();
  }

  of(lane: LaneState): readonly Uint8Array[] | null {
    const lanes = this.owners.get(lane.owner)?.lanes;
    const kept = lanes?.get(lane);
    if (lanes === undefined || kept === undefined) return null;
    // The last that was continued.
    lanes.delete(lane);
    lanes.set(lane, kept);
    return kept.items;
  }

  forget(lane: LaneState): void {
    const own = this.owners.get(lane.owner);
    const kept = own?.lanes.get(lane);
    if (own === undefined || kept === undefined) return;
    own.lanes.delete(lane);
    own.bytes -= kept.bytes;
    this.bytes -= kept.bytes;
    if (own.lanes.size === 0) this.owners.delete(lane.owner);
  }

  private forgetOne(): void {
    let most: OwnersConversations | null = null;
    for (const own of this.owners.values()) if (most === null || own.bytes > most.bytes) most = own;
    const [oldest] = most!.lanes.keys();
    this.forget(oldest!);
  }
}

interface OwnersConversations {
  bytes: number;
  /** In the order in which they were continued. */
  readonly lanes: Map<LaneState, { readonly items: readonly Uint8Array[]; readonly bytes: number }>;
}

/** Bytes of a conversation without a word. */
const OVERHEAD = 512;

export const sizeOf = (items: readonly Uint8Array[]): number =>
  items.reduce((sum, { length }) => sum + length + 1, 0);

/** A lane and its most recent response. */
interface LaneState {
  readonly owner: string;
  responseId: string | null;
}

export interface Continuation {
  readonly bytes: number;
  /** Null once it was forgotten for want of memory, which may happen during the turn. */
  items(): readonly Uint8Array[] | null;
  /** The turn is over. */
  release(): void;
}

const FROM_THE_START: Continuation = { bytes: 0, items: () => [], release: () => {} };

/** The lanes of a connection: each knows the conversation up to its most recent response. */
export class Lanes {
  private readonly lanes = new Map<string | null, LaneState>();

  constructor(
    private readonly memory: ConversationMemory,
    /** Whose memory it is. */
    private readonly owner: string,
  ) {}

  /** Whether there is a place for this lane. */
  admits(name: string | null): boolean {
    if (name === null || this.lanes.has(name)) return true;
    if (this.lanes.size - (this.lanes.has(null) ? 1 : 0) >= MAX_LANES) return false;
    this.lanes.set(name, { owner: this.owner, responseId: null });
    return true;
  }

  /** What a turn of this lane continues: the lane's own response, before another's. Null where it is not known. */
  resume(responseId: string | null, name: string | null): Continuation | null {
    if (responseId === null) return FROM_THE_START;
    const own = this.lanes.get(name);
    if (own?.responseId === responseId) return this.continued(own);
    for (const lane of this.lanes.values()) if (lane.responseId === responseId) return this.forked(lane);
    return null;
  }

  /** The conversation that was continued, and what was added to it. */
  keep(name: string | null, responseId: string, from: Continuation, added: readonly Uint8Array[]): void {
    const lane = this.lanes.getOrInsertComputed(name, () => ({ owner: this.owner, responseId }));
    const compaction = lastCompaction(added);
    const before = compaction === -1 ? from.items() : [];
    // Forgotten while the answer was on its way: without its beginning, the conversation cannot be continued.
    if (before === null) return this.forget(lane);
    lane.responseId = responseId;
    this.memory.keep(lane, [...before, ...added.slice(Math.max(0, compaction))]);
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

  private continued(lane: LaneState, release = () => {}): Continuation | null {
    const items = this.memory.of(lane);
    return items === null ? null : { bytes: sizeOf(items), items: () => this.memory.of(lane), release };
  }

  /** Kept once more, because the other lane goes on by itself. */
  private forked(lane: LaneState): Continuation | null {
    const items = this.memory.of(lane);
    if (items === null) return null;
    const fork = { ...lane };
    this.memory.keep(fork, items);
    return this.continued(fork, () => this.memory.forget(fork));
  }

  private forget(lane: LaneState): void {
    lane.responseId = null;
    this.memory.forget(lane);
  }
}

/**
 * Where a conversation begins that was shortened: what stands before the item that sums it up is not sent again. Looked
 * for in what is new alone: each turn would look through all of the conversation.
 */
const lastCompaction = (added: readonly Uint8Array[]): number =>
  added.findLastIndex(
    (item) => contains(item, COMPACTION) && parseObject(textOf(item, 0, item.length))?.type === "compaction",
  );

const COMPACTION = Buffer.from('"compaction"');

/** Named ones. */
export const MAX_LANES = 32;
