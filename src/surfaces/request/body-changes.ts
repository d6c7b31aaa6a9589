import { bytesOf } from "../json/bytes.ts";
import { Edits } from "../json/edits.ts";
import { JsonCursor } from "../json/json-cursor.ts";

/** What changes in a request's body on its way to a host; everything else arrives byte for byte. */
export class BodyChanges {
  /** Fields of the client's that are left out, because the answer means the same without them. */
  readonly omitted: string[] = [];
  /** Members whose change leaves something out. */
  private readonly lossy = new Set<string>();
  private readonly names: string[] = [];
  private readonly values: (string | null)[] = [];

  /** A new value, as JSON, for a member that is there or is added; null drops it. Each member is set once. */
  set(name: string, value: string | null): void {
    this.names.push(name);
    this.values.push(value);
  }

  /** Leaves out a member of the client's, once, and names it where it says anything. */
  drop(name: string, value: unknown): void {
    if (this.names.includes(name)) return;
    if (value === null) this.set(name, null);
    else this.leaveOut(name, null, [name]);
  }

  /** A member without a part of it, as JSON, or without any; what is missing is named. */
  leaveOut(name: string, left: string | null, omitted: Iterable<string>): void {
    this.set(name, left);
    this.lossy.add(name);
    this.omitted.push(...omitted);
  }

  /** The body without what is left out, and with nothing else changed. Before `applyTo`. */
  contentOf(body: Uint8Array): Uint8Array {
    const only = new BodyChanges();
    for (const [index, name] of this.names.entries())
      if (this.lossy.has(name)) only.set(name, this.values[index]!);
    return only.applyTo(body);
  }

  /** The object with all of it done, once. It must be well-formed, and may have each of these members once. */
  applyTo(body: Uint8Array): Uint8Array {
    this.edit(body, null);
    return EDITS.applyTo(body);
  }

  /** The same as parts of a large one. `list` is not read again. */
  partsOf(body: Uint8Array, list: BodySpan | null): readonly Uint8Array[] {
    this.edit(body, list);
    return EDITS.partsOf(body);
  }

  private edit(body: Uint8Array, list: BodySpan | null): void {
    CURSOR.begin(body, 0, body.length);
    // An exception may have left some.
    EDITS.forget();
    const isEmpty = this.change(CURSOR, EDITS, list);
    const added = this.added(isEmpty);
    const closingBrace = CURSOR.at - 1;
    if (added !== "") EDITS.replace(closingBrace, closingBrace, bytesOf(added));
    CURSOR.letGo();
  }

  /**
   * The members that are there. Afterwards the values are those that are left to be added. True when no
   * member stays.
   */
  private change(cursor: JsonCursor, edits: Edits, list: BodySpan | null): boolean {
    const { values } = this;
    let isEmpty = true;
    cursor.enterObject();
    while (cursor.nextMember()) {
      const index = this.indexAt(cursor);
      const { memberStart, comma, at: valueStart } = cursor;
      if (list !== null && list.from === valueStart) cursor.at = list.to;
      else cursor.skip();
      const value = index === -1 ? undefined : values[index];
      if (value === null) {
        // Members lose their comma with them: the first that stays has none before it.
        if (isEmpty) edits.leaveOut(memberStart, cursor.nextMemberStart);
        else edits.leaveOut(comma, cursor.at);
        continue;
      }
      isEmpty = false;
      if (value === undefined) continue;
      edits.replace(valueStart, cursor.at, bytesOf(value));
      values[index] = null;
    }
    return isEmpty;
  }

  private added(isFirst: boolean): string {
    const { names, values } = this;
    let added = "";
    for (let index = 0; index < names.length; index++) {
      if (values[index] === null) continue;
      added += `${isFirst && added === "" ? "" : ","}"${names[index]!}":${values[index]!}`;
    }
    return added;
  }

  private indexAt(cursor: JsonCursor): number {
    for (let index = 0; index < this.names.length; index++)
      if (cursor.isNamed(this.names[index]!)) return index;
    const { escapedName } = cursor;
    return escapedName === null ? -1 : this.names.indexOf(escapedName);
  }
}

interface BodySpan {
  readonly from: number;
  readonly to: number;
}

/** One of each for all bodies, because each is changed without a wait. */
const CURSOR = new JsonCursor();
const EDITS = new Edits();
