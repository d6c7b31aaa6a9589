/**
 * The header fields of a response, as places in its text. Hosts send twenty fields and more, of which a
 * handful is looked at: a string for each name and value would be most of what an answer's head costs.
 */
export class HeaderFields {
  /** `places`, of each field in turn: where its name begins, and where its value begins and ends. */
  constructor(
    private readonly text: string,
    private readonly offsets: readonly number[],
  ) {}

  /** The name in lower case; repeated fields are joined by ", ". */
  get(name: string): string | undefined {
    const { text, offsets } = this;
    let value: string | undefined;
    for (let n = 0; n < offsets.length; n += OFFSETS_PER_FIELD) {
      if (!this.isNamed(name, offsets[n]!)) continue;
      const given = text.slice(offsets[n + 1], offsets[n + 2]);
      value = value === undefined ? given : `${value}, ${given}`;
    }
    return value;
  }

  has(name: string): boolean {
    return this.get(name) !== undefined;
  }

  /** Names in lower case, with what `get` says of them. */
  [Symbol.iterator](): Iterator<[string, string]> {
    const { text, offsets } = this;
    const values = new Map<string, string>();
    for (let n = 0; n < offsets.length; n += OFFSETS_PER_FIELD) {
      const name = text.slice(offsets[n], text.indexOf(":", offsets[n])).toLowerCase();
      const given = text.slice(offsets[n + 1], offsets[n + 2]);
      const before = values.get(name);
      values.set(name, before === undefined ? given : `${before}, ${given}`);
    }
    return values.entries();
  }

  private isNamed(name: string, from: number): boolean {
    const { text } = this;
    if (text.charCodeAt(from + name.length) !== COLON) return false;
    for (let n = 0; n < name.length; n++) {
      if (lowerCase(text.charCodeAt(from + n)) !== name.charCodeAt(n)) return false;
    }
    return true;
  }
}

export const NO_FIELDS = new HeaderFields("", []);

const OFFSETS_PER_FIELD = 3;
const COLON = 0x3a;

const lowerCase = (code: number): number => (code >= 0x41 && code <= 0x5a ? code + 0x20 : code);
