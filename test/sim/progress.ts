/** Says on stderr every few seconds how far a long run has come. */
export class Progress {
  private readonly startedMs = performance.now();
  private reportedMs = this.startedMs;

  constructor(
    private readonly whole: number,
    private readonly what: string,
  ) {}

  /** Cheap enough for every step. */
  at(done: number): void {
    const nowMs = performance.now();
    if (nowMs - this.reportedMs < EVERY_MS) return;
    this.reportedMs = nowMs;
    const share = ((100 * done) / this.whole).toFixed(1);
    const seconds = Math.round((nowMs - this.startedMs) / 1_000);
    console.error(`${done} of ${this.whole} ${this.what} (${share}%) in ${seconds} s`);
  }
}

const EVERY_MS = 5_000;
