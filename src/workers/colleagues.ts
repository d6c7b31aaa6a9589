import type { Metric } from "../telemetry/metric.ts";
import type { Clock } from "../units/clock.ts";
import type { Line } from "./messages.ts";

/** What one worker learns of all of them, through the supervisor. */
export class Colleagues {
  private questions = 0;
  private readonly open = new Map<number, (metrics: readonly Metric[] | null) => void>();

  constructor(
    private readonly line: Line,
    private readonly clock: Clock,
    readOwn: () => readonly Metric[],
  ) {
    line.listen((message) => {
      if (message.kind === "metrics") this.open.get(message.question)?.(message.metrics);
      else line.send({ kind: "metrics_read", round: message.round, metrics: readOwn() });
    });
  }

  /** Of all workers; null when the supervisor does not answer. */
  async metrics(): Promise<readonly Metric[] | null> {
    if (this.open.size >= MAX_QUESTIONS) return null;
    const question = ++this.questions;
    const { promise, resolve } = Promise.withResolvers<readonly Metric[] | null>();
    this.open.set(question, resolve);
    const timer = this.clock.after(PATIENCE_MS, () => resolve(null));
    this.line.send({ kind: "metrics_wanted", question });
    const metrics = await promise;
    this.open.delete(question);
    timer.cancel();
    return metrics;
  }
}

/** The supervisor waits half a second for the slowest worker. */
const PATIENCE_MS = 2_000;
const MAX_QUESTIONS = 100;
