/**
 * How many requests are remembered, and how many bytes of their answers: for one balance, and for all. The oldest
 * that have ended make room, first of their answers, which are refused as gone from then on, and then altogether.
 */
export class RepeatRoom {
  count = 0;
  bytes = 0;
  /** In the order in which they ended. */
  private readonly ended = new Set<Remembered>();
  private readonly answers = new Set<Remembered>();

  constructor(
    private readonly most: { readonly requests: number; readonly bytes: number },
    /** What this one is a part of. */
    private readonly all: RepeatRoom | null = null,
  ) {}

  get isEmpty(): boolean {
    return this.count === 0;
  }

  /** False where as many have not ended. */
  enter(): boolean {
    if (!this.hasRoomForOne() || this.all?.enter() === false) return false;
    this.count += 1;
    return true;
  }

  leave(one: Remembered): void {
    this.count -= 1;
    this.ended.delete(one);
    this.answers.delete(one);
    this.all?.leave(one);
  }

  /** False where even without all answers that have ended there is no room. */
  take(bytes: number): boolean {
    if (!this.hasRoomFor(bytes) || this.all?.take(bytes) === false) return false;
    this.bytes += bytes;
    return true;
  }

  giveBack(bytes: number): void {
    this.bytes -= bytes;
    this.all?.giveBack(bytes);
  }

  hasEnded(one: Remembered): void {
    this.ended.add(one);
    this.answers.add(one);
    this.all?.hasEnded(one);
  }

  answerIsGone(one: Remembered): void {
    this.answers.delete(one);
    this.all?.answerIsGone(one);
  }

  private hasRoomForOne(): boolean {
    if (this.count < this.most.requests) return true;
    const [oldest] = this.ended;
    oldest?.forget();
    return oldest !== undefined;
  }

  private hasRoomFor(bytes: number): boolean {
    while (this.bytes + bytes > this.most.bytes) {
      const [oldest] = this.answers;
      if (oldest === undefined) return false;
      oldest.letGo();
    }
    return true;
  }
}

export interface Remembered {
  letGo(): void;
  forget(): void;
}
