import { JsonCursor } from "./json-cursor.ts";
import { isSpelt, OPEN_BRACE, OPEN_BRACKET, QUOTE, skipSpace } from "./json-scan.ts";

/**
 * A value of JSON where it stands in its bytes. Only what somebody asks for is looked through, once, and nothing is parsed:
 * for places in large bodies that stay as they are.
 */
export class JsonSpan {
  constructor(
    private readonly bytes: Uint8Array,
    readonly start = skipSpace(bytes, 0, bytes.length),
    readonly end = bytes.length,
    /** The values of a member that is a list. */
    readonly items: readonly JsonSpan[] = [],
    /** What has to go when the member is removed: its name, and a comma. */
    readonly member: { readonly from: number; readonly to: number } | null = null,
  ) {}

  get isText(): boolean {
    return this.bytes[this.start] === QUOTE;
  }

  get isObject(): boolean {
    return this.bytes[this.start] === OPEN_BRACE;
  }

  get isArray(): boolean {
    return this.bytes[this.start] === OPEN_BRACKET;
  }

  /** It is this text, which has no signs in it that are escaped. */
  is(text: string): boolean {
    return this.isText && isSpelt(this.bytes, text, this.start + 1, this.end - 1);
  }

  /** As it is spelt. */
  get spelt(): Uint8Array {
    return this.bytes.subarray(this.start, this.end);
  }

  /** The members of these names; null for those that it has not, and for all of what is no object. */
  members<Names extends readonly string[]>(...names: Names): { [At in keyof Names]: JsonSpan | null } {
    const cursor = new JsonCursor();
    const found = names.map((): JsonSpan | null => null);
    cursor.begin(this.bytes, this.start, this.end);
    cursor.enterObject();
    while (cursor.nextMember()) {
      const index = names.findIndex((name) => cursor.isNamed(name));
      if (index === -1) cursor.skip();
      else found[index] = this.pass(cursor);
    }
    return (cursor.isDone ? found : names.map(() => null)) as { [At in keyof Names]: JsonSpan | null };
  }

  private pass(cursor: JsonCursor): JsonSpan {
    const { at: start, comma, memberStart } = cursor;
    const items: JsonSpan[] = [];
    if (cursor.isArray) {
      cursor.enterArray();
      while (cursor.nextValue()) {
        const { at } = cursor;
        cursor.skip();
        items.push(new JsonSpan(this.bytes, at, cursor.at));
      }
    } else cursor.skip();
    const { at: end, nextMemberStart } = cursor;
    // The first member takes the comma behind it along, any other the one before it.
    const member = comma === -1 ? { from: memberStart, to: nextMemberStart } : { from: comma, to: end };
    return new JsonSpan(this.bytes, start, end, items, member);
  }
}
