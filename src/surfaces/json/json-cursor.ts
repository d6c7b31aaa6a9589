import { NO_BYTES, textOf } from "./bytes.ts";
import { parseJson } from "./json.ts";
import {
  BACKSLASH,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COLON,
  COMMA,
  isSpelt,
  NOT_JSON,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
  skipSpace,
  skipString,
  skipValue,
  TOO_DEEP,
} from "./json-scan.ts";

/**
 * Reads JSON in place, value after value, without creating objects. The gateway changes two or three members
 * of a request and one of each event; everything else must reach the other side as it came, so it is copied
 * and never printed again. An event of a stream carries one word, and what `JSON.parse` makes of all the rest
 * costs more than everything else that is done for it. A caller that meets anything unexpected gives up and
 * reads the whole with `JSON.parse`; nothing that it read before then may have taken effect.
 */
export class JsonCursor {
  /** Where the value begins that is to be read or skipped next. */
  at = 0;
  /** The quote of the member's name. */
  memberStart = 0;
  /** Where the value of the passed member begins. */
  valueStart = 0;
  private nameEnd = 0;
  /** The comma before the member; -1 at the first one. */
  comma = -1;
  private bytes = NO_BYTES;
  private end = 0;
  private givenUp = false;
  /** Whether it gave up because values are nested too deeply. */
  isTooDeep = false;

  constructor(private readonly mostDepth = Number.POSITIVE_INFINITY) {}

  begin(bytes: Uint8Array, start: number, end: number): void {
    this.bytes = bytes;
    this.at = skipSpace(bytes, start, end);
    this.end = end;
    this.givenUp = false;
    this.isTooDeep = false;
  }

  /** Releases the bytes, until it is started again. */
  letGo(): void {
    this.begin(NO_BYTES, 0, 0);
  }

  /** Whether everything was read, and as expected. */
  get isDone(): boolean {
    return !this.givenUp && skipSpace(this.bytes, this.at, this.end) === this.end;
  }

  enterObject(): void {
    this.take(OPEN_BRACE);
  }

  /** Whether the object has one more member; its value must be read or skipped. */
  nextMember(): boolean {
    const { bytes, end } = this;
    let at = skipSpace(bytes, this.at, end);
    if (bytes[at] === CLOSE_BRACE) {
      this.at = at + 1;
      return false;
    }
    this.comma = -1;
    if (bytes[at] === COMMA) {
      this.comma = at;
      at = skipSpace(bytes, at + 1, end);
    }
    const nameEnd = skipString(bytes, at, end);
    const colon = skipSpace(bytes, nameEnd, end);
    const valueStart = skipSpace(bytes, colon + 1, end);
    if (bytes[at] !== QUOTE || bytes[colon] !== COLON || valueStart >= end) this.givenUp = true;
    this.judgeComma(at, this.comma, OPEN_BRACE);
    this.memberStart = at;
    this.nameEnd = nameEnd;
    this.at = valueStart;
    return !this.givenUp;
  }

  /**
   * Steps over the members of the object that begins here, up to and with the one of that name: its value is
   * then from `valueStart` to `at`. False when it has none, or cannot be read.
   */
  passMember(name: string): boolean {
    this.enterObject();
    while (this.nextMember()) {
      const isIt = this.isNamed(name);
      this.valueStart = this.at;
      this.skip();
      if (isIt) return !this.givenUp;
    }
    return false;
  }

  /** Behind the comma that follows the value, if one does. */
  get nextMemberStart(): number {
    const at = skipSpace(this.bytes, this.at, this.end);
    return this.bytes[at] === COMMA ? at + 1 : at;
  }

  /** As it is spelt. */
  get name(): string {
    return textOf(this.bytes, this.memberStart + 1, this.nameEnd - 1);
  }

  /** A name that is spelt with an escape is not found: see `escapedName`. */
  isNamed(name: string): boolean {
    return isSpelt(this.bytes, name, this.memberStart + 1, this.nameEnd - 1);
  }

  /**
   * The name, if it is written with an escape, which another parser may not recognise; null for a plain one.
   */
  get escapedName(): string | null {
    for (let at = this.memberStart + 1; at < this.nameEnd - 1; at++)
      if (this.bytes[at] === BACKSLASH) return this.decodedName();
    return null;
  }

  enterArray(): void {
    this.take(OPEN_BRACKET);
  }

  /** Whether the array has one more value, which must be read or skipped. */
  nextValue(): boolean {
    const { bytes, end } = this;
    let at = skipSpace(bytes, this.at, end);
    if (bytes[at] === CLOSE_BRACKET) {
      this.at = at + 1;
      return false;
    }
    let comma = -1;
    if (bytes[at] === COMMA) {
      comma = at;
      at = skipSpace(bytes, at + 1, end);
    }
    this.at = at;
    if (at >= end || bytes[at] === CLOSE_BRACKET) this.givenUp = true;
    this.judgeComma(at, comma, OPEN_BRACKET);
    return !this.givenUp;
  }

  skip(): void {
    const end = skipValue(this.bytes, this.at, this.end, this.mostDepth);
    if (end === TOO_DEEP) this.givenUp = this.isTooDeep = true;
    else if (end === NOT_JSON) this.givenUp = true;
    else this.at = end;
  }

  get isArray(): boolean {
    return this.bytes[this.at] === OPEN_BRACKET;
  }

  get isObject(): boolean {
    return this.bytes[this.at] === OPEN_BRACE;
  }

  get isText(): boolean {
    return this.bytes[this.at] === QUOTE;
  }

  /** The value is this text, which has no signs in it that are escaped. */
  isTheText(text: string): boolean {
    const start = this.at + 1;
    const end = start + text.length;
    return this.isText && this.bytes[end] === QUOTE && isSpelt(this.bytes, text, start, end);
  }

  private decodedName(): string {
    const spelt = textOf(this.bytes, this.memberStart, this.nameEnd);
    return (parseJson(spelt) as string | undefined) ?? spelt;
  }

  /** The first of a list has no comma before it, and all others have one. */
  private judgeComma(at: number, comma: number, bracket: number): void {
    let before = (comma === -1 ? at : comma) - 1;
    while (this.bytes[before]! <= SPACE) before -= 1;
    if ((this.bytes[before] === bracket) !== (comma === -1)) this.givenUp = true;
  }

  private take(bracket: number): void {
    const at = skipSpace(this.bytes, this.at, this.end);
    if (at >= this.end || this.bytes[at] !== bracket) this.givenUp = true;
    this.at = skipSpace(this.bytes, at + 1, this.end);
  }
}

const SPACE = 0x20;
