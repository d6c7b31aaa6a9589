import { estimateTokens } from "./estimate.ts";

/**
 * What a model has written so far, for the bill of an answer whose tokens no host vouches for. It is counted
 * cheaply as it passes, and kept, so that it can be counted exactly if it comes to that: only the whole of a
 * text has its number of tokens, its pieces have more. Counting it on the way would cost every stream what only
 * the few need that break, are left, or end without usage.
 *
 * Kept are the bytes of JSON as they came, in one array that grows with them: about five bytes a token, which is
 * less than any object for each piece. Texts that arrive side by side (two choices, two calls) are kept apart
 * by their channel.
 */
export class AnswerText {
  /** Tokens of all of it, by estimate. */
  estimate = 0;
  /** The part that came after the host's last report of usage. */
  estimateSinceReport = 0;
  private kept = NOTHING;
  private length = 0;
  private channel = Number.NaN;
  /** How much of it the host's last report of usage has. */
  private reported = 0;
  /** Tokens beyond what is kept; of these, what the host's last report has, and what the client was given. */
  private unkept = 0;
  private reportedUnkept = 0;
  private deliveredUnkept = 0;
  /** What the client has been given. */
  private delivered = 0;
  private deliveredEstimate = 0;
  private ended = false;

  /** Text between the quotes of JSON, which comes to so many tokens by estimate. */
  addJson(bytes: Uint8Array, from: number, to: number, channel: number, tokens: number): void {
    if (from === to || !this.goesOn(to - from, channel, tokens)) return;
    const { kept } = this;
    let at = this.length;
    for (let index = from; index < to; index++) kept[at++] = bytes[index]!;
    this.length = at;
  }

  add(text: string, channel: number): void {
    if (text === "") return;
    // As JSON spells them, halves of a pair that came apart meet again.
    const json = JSON.stringify(text);
    if (this.goesOn(json.length * MAX_BYTES_A_UNIT, channel, estimateTokens(text)))
      this.length += this.write(json.slice(1, -1), this.length);
  }

  /** The host has reported its usage, of all that came so far. */
  report(): void {
    this.reported = this.length;
    this.reportedUnkept = this.unkept;
    this.estimateSinceReport = 0;
  }

  /** All that came so far was given to the client. */
  deliver(): void {
    this.delivered = this.length;
    this.deliveredEstimate = this.estimate;
    this.deliveredUnkept = this.unkept;
  }

  /** The client has left: only what it was given counts. */
  end(): void {
    this.ended = true;
    const lost = this.estimate - this.deliveredEstimate;
    this.estimateSinceReport = Math.max(0, this.estimateSinceReport - lost);
    this.estimate = this.deliveredEstimate;
    this.length = this.delivered;
    this.unkept = this.deliveredUnkept;
    this.reported = Math.min(this.reported, this.length);
    this.reportedUnkept = Math.min(this.reportedUnkept, this.unkept);
  }

  /** The texts, each whole, and how many tokens next to them were not kept. */
  all(): Written {
    return this.since(BEGINNING);
  }

  sinceReport(): Written {
    return this.since(this.reportMoment);
  }

  /** How far it has come, for `since`. */
  get moment(): TextMoment {
    const { length, unkept, estimate } = this;
    return { length, unkept, estimate };
  }

  /** When the host last reported its usage; the beginning, before it has. */
  get reportMoment(): TextMoment {
    const { reported: length, reportedUnkept: unkept, estimate, estimateSinceReport } = this;
    return { length, unkept, estimate: estimate - estimateSinceReport };
  }

  /** The texts from that moment on, to another or the end. */
  since(from: TextMoment, to: TextMoment = this.moment): Written {
    const end = Math.min(to.length, this.length);
    const spelt = Buffer.prototype.toString.call(this.kept, "utf8", Math.min(from.length, end), end);
    const texts = new Map<string, string>();
    const alone: string[] = [];
    // A report may come within a text: then its rest has no head.
    for (const part of spelt.split("\n")) {
      const head = part.indexOf("\t");
      const label = head === -1 ? "rest" : part.slice(0, head);
      const text = part.slice(head + 1);
      if (text === "") continue;
      if (label === "") alone.push(text);
      else texts.set(label, (texts.get(label) ?? "") + text);
    }
    const unkept = Math.max(0, Math.min(to.unkept, this.unkept) - from.unkept);
    return { texts: [...texts.values(), ...alone].map(plain), unkept: Math.ceil(unkept) };
  }

  private goesOn(bytes: number, channel: number, tokens: number): boolean {
    if (this.ended) return false;
    this.estimate += tokens;
    this.estimateSinceReport += tokens;
    if (!this.hasRoom(bytes + MAX_HEAD_BYTES)) {
      this.unkept += tokens;
      return false;
    }
    if (channel !== this.channel || channel === ALONE) {
      this.channel = channel;
      this.length += this.write(`\n${channel === ALONE ? "" : channel}\t`, this.length);
    }
    return true;
  }

  private hasRoom(bytes: number): boolean {
    const { kept, length } = this;
    const needed = length + bytes;
    if (needed <= kept.length) return true;
    if (needed > MAX_KEPT_BYTES) return false;
    const grown = new Uint8Array(Math.max(needed, Math.min(length * 1.5, MAX_KEPT_BYTES), MIN_BYTES));
    grown.set(length === kept.length ? kept : kept.subarray(0, length));
    this.kept = grown;
    return true;
  }

  private write(text: string, at: number): number {
    return Buffer.prototype.write.call(this.kept, text, at);
  }
}

/** A place in what is written so far, and the tokens up to there: those that are not kept, and all by estimate. */
export interface TextMoment {
  readonly length: number;
  readonly unkept: number;
  readonly estimate: number;
}

export const BEGINNING: TextMoment = { length: 0, unkept: 0, estimate: 0 };

export interface Written {
  readonly texts: readonly string[];
  /** Tokens by estimate of what is not in `texts`. */
  readonly unkept: number;
}

/** The channel of texts that nothing continues, such as the name of a function. */
export const ALONE = -1;

/** The longest answers that models write come to half of it. */
const MAX_KEPT_BYTES = 1024 * 1024;
const MIN_BYTES = 256;
const MAX_BYTES_A_UNIT = 3;
/** A channel's number, between the two signs that no text in JSON has. */
const MAX_HEAD_BYTES = 24;
const NOTHING = new Uint8Array();

function plain(spelt: string): string {
  try {
    return JSON.parse(`"${spelt}"`);
  } catch {
    return spelt;
  }
}
