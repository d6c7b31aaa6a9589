import { type AnswerText, BEGINNING, type TextMoment } from "../../tokens/answer-text.ts";
import type { Counts } from "../billed-tokens.ts";

/**
 * The exact tokens of a stream that runs, for where its estimate would end it: prose is estimated a third too high,
 * so it would end well before what its limits pay. Counted off the loop and piece by piece, each piece once. The
 * pieces of a text have no fewer tokens than the whole, so this is not less than what will be billed.
 */
export class RunningCount {
  private from: TextMoment = BEGINNING;
  private isBusy = false;
  /** Resolves when the count under way is known; null while there is none. */
  counting: Promise<void> | null = null;

  constructor(
    private readonly text: Pick<AnswerText, "moment" | "reportMoment" | "since">,
    private readonly counts: Pick<Counts, "answer">,
  ) {}

  /** The host has said what all that came until then comes to: only what follows is counted from here on. */
  reported(): void {
    this.from = this.text.reportMoment;
  }

  /** Counts what has come since the last time, and reports by how many tokens its estimate was too low. */
  update(notify: (tooLow: number) => void): void {
    const { from, text } = this;
    const to = text.moment;
    const estimate = to.estimate - from.estimate;
    if (this.isBusy || estimate < MIN_TOKENS) return;
    const { texts, unkept } = text.since(from);
    this.isBusy = true;
    this.counting = this.counts.answer(texts).then((tokens) => {
      this.counting = null;
      // There is too much to count: from here on the estimate stands.
      if (tokens === null) return;
      this.isBusy = false;
      // Its host has said so meanwhile.
      if (this.from !== from) return;
      this.from = to;
      notify(tokens + unkept - estimate);
    });
  }
}

/** Less is not worth a turn of the thread. */
const MIN_TOKENS = 64;
