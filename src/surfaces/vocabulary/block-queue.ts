import { AnswerParts } from "../events/answer-bounds.ts";
import type { AnswerEvents, Citation, OpenBlock } from "./answer-events.ts";
import type { Seal } from "./conversation.ts";

/**
 * Blocks that a host sends side by side (parallel tool calls may be), passed on one after another: the first goes
 * straight on, the others wait until it is closed.
 */
export class BlockQueue {
  private readonly parts = new AnswerParts();
  private readonly waiting: QueuedBlock[] = [];
  /** Characters that wait behind the first block. */
  private held = 0;

  constructor(private readonly events: AnswerEvents) {}

  /** More waits behind the first block than any host that is well lets wait. */
  get isOverfull(): boolean {
    return this.held > MAX_HELD_CHARACTERS;
  }

  open(key: string, block: OpenBlock): void {
    this.parts.begin();
    this.waiting.push({ key, block, texts: [], citations: [], seal: null, closed: false });
    if (this.waiting.length === 1) this.events.open(block);
  }

  isOpen(key: string): boolean {
    return this.find(key) !== undefined;
  }

  delta(key: string, text: string, logprobs?: readonly unknown[]): void {
    const block = this.find(key);
    if (block === undefined || text === "") return;
    if (block === this.waiting[0]) {
      this.events.delta(text, logprobs);
    } else {
      block.texts.push(text);
      this.held += text.length;
    }
  }

  cite(key: string, citation: Citation): void {
    const block = this.find(key);
    if (block === undefined) return;
    if (block === this.waiting[0]) this.events.cite(citation);
    else {
      block.citations.push(citation);
      this.held += citation.url.length + citation.title.length;
    }
  }

  close(key: string, seal: Seal | null): void {
    const block = this.find(key);
    if (block === undefined) return;
    block.closed = true;
    block.seal = seal;
    this.advance();
  }

  closeAll(): void {
    for (const block of this.waiting) block.closed = true;
    this.advance();
  }

  private find(key: string): QueuedBlock | undefined {
    for (const block of this.waiting) if (block.key === key && !block.closed) return block;
    return undefined;
  }

  private advance(): void {
    while (this.waiting[0]?.closed === true) {
      this.events.close(this.waiting.shift()!.seal);
      const next = this.waiting[0];
      if (next === undefined) return;
      this.events.open(next.block);
      for (const text of next.texts) {
        this.held -= text.length;
        this.events.delta(text);
      }
      next.texts.length = 0;
      for (const citation of next.citations) {
        this.held -= citation.url.length + citation.title.length;
        this.events.cite(citation);
      }
      next.citations.length = 0;
    }
  }
}

interface QueuedBlock {
  readonly key: string;
  readonly block: OpenBlock;
  readonly texts: string[];
  readonly citations: Citation[];
  seal: Seal | null;
  closed: boolean;
}

const MAX_HELD_CHARACTERS = 16 * 1024 * 1024;
