import type { Ledger } from "../ledger/ledger.ts";
import type { Reservation } from "../ledger/reservation.ts";
import { type AnswerText, BEGINNING, type TextMoment } from "../tokens/answer-text.ts";
import type { TokenizerFamily } from "../tokens/families.ts";
import type { AnswerTexts } from "./counting/work.ts";

/**
 * The output tokens that every open stream has delivered, for the ledger's checkpoints: after a crash they are what
 * is billed. The estimate that sizes holds errs upwards, by a third for prose, so it must not be billed. Once a
 * second, a thread counts what has come since the last time, each piece of text once and many streams at once.
 * Answers that end within a second are never counted.
 */
export class DeliveredCounts {
  private readonly streams = new Map<Reservation, CountedStream>();
  private isCounting = false;
  /** Families whose vocabulary the thread has started to load, which takes it a third of a second. */
  private readonly loading = new Set<TokenizerFamily>();

  constructor(
    private readonly ledger: Pick<Ledger, "delivered">,
    private readonly countEach: CountEach,
  ) {}

  get openStreams(): number {
    return this.streams.size;
  }

  add(reservation: Reservation, text: CountedText, family: TokenizerFamily): void {
    this.streams.set(reservation, { reservation, text, family, counted: BEGINNING, tokens: 0 });
    if (this.loading.has(family)) return;
    this.loading.add(family);
    void this.countEach([{ texts: [], family }]);
  }

  remove(reservation: Reservation): void {
    this.streams.delete(reservation);
  }

  /** Resolves once the ledger knows what the streams have delivered by now; null where nothing has to be counted. */
  count(): Promise<void> | null {
    if (this.isCounting) return null;
    const grown = [...this.streams.values()].filter(hasGrown);
    if (grown.length === 0) return null;
    this.isCounting = true;
    return this.countAll(grown).finally(() => {
      this.isCounting = false;
    });
  }

  private async countAll(grown: readonly CountedStream[]): Promise<void> {
    for (let next = 0; next < grown.length; ) {
      const batch: Piece[] = [];
      for (let bytes = 0; next < grown.length && bytes < MAX_BATCH_BYTES; next++) {
        const piece = pieceOf(grown[next]!);
        bytes += piece.bytes;
        batch.push(piece);
      }
      // Only the texts go to the thread.
      const counts = await this.countEach(batch.map(({ texts, family }) => ({ texts, family })));
      for (const [index, piece] of batch.entries()) this.note(piece, counts?.[index] ?? null);
    }
  }

  private note({ stream, to, estimate }: Piece, count: number | null): void {
    // A cut inside a word can make one token more of it. What nobody could count is billed at half of its estimate.
    const more = count === null ? Math.floor(estimate / 2) : count - (stream.tokens > 0 ? 1 : 0);
    stream.tokens += Math.max(0, more);
    stream.counted = to;
    this.ledger.delivered(stream.reservation, stream.tokens);
  }
}

/** Tokens of each piece; null when they cannot be counted in time. */
export type CountEach = (pieces: readonly AnswerTexts[]) => Promise<readonly number[] | null>;

type CountedText = Pick<AnswerText, "moment" | "since">;

interface CountedStream {
  readonly reservation: Reservation;
  readonly text: CountedText;
  readonly family: TokenizerFamily;
  /** How far the text is counted, and how many tokens it has up to there. */
  counted: TextMoment;
  tokens: number;
}

interface Piece extends AnswerTexts {
  readonly stream: CountedStream;
  readonly to: TextMoment;
  readonly bytes: number;
  readonly estimate: number;
}

/** A little more is not worth a count: three quarters of what was delivered have to be billed. */
const hasGrown = ({ text, counted, tokens }: CountedStream): boolean =>
  text.moment.estimate - counted.estimate > tokens / MIN_GROWTH;

function pieceOf(stream: CountedStream): Piece {
  const { text, counted, family } = stream;
  const to = text.moment;
  const { texts } = text.since(counted);
  const [bytes, estimate] = [to.length - counted.length, to.estimate - counted.estimate];
  return { stream, texts, family, to, bytes, estimate };
}

const MIN_GROWTH = 16;
/** Some 15 ms of the thread, for which a bill may have to wait. */
const MAX_BATCH_BYTES = 256 * 1024;
