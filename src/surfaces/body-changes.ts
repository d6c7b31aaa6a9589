import { Edits } from "./edits.ts";
import { JsonCursor } from "./json-cursor.ts";

/** What changes in a request's body on its way to a host; everything else arrives byte for byte. */
export class BodyChanges {
  /** Fields of the client's that are left out, because the answer means the same without them. */
  readonly omitted: string[] = [];
  private readonly names: string[] = [];
  private readonly values: (string | null)[] = [];

  /** A new value, as JSON, for a member that is there or is added; null drops it. Each member is set once. */
  set(name: string, value: string | null): void {
    this.names.push(name);
    this.values.push(value);
  }

  /** The object with all of it done. It must be well-formed, and may have each of these members once. */
  applyTo(body: Uint8Array): Uint8Array {
    const cursor = new JsonCursor();
    const edits = new Edits();
    const { names, values } = this;
    let isFirst = true;
    cursor.begin(body, 0, body.length);
    cursor.enterObject();
    while (cursor.nextMember()) {
      const index = this.indexAt(cursor);
      const { memberStart, comma, at } = cursor;
      cursor.skip();
      const value = index === -1 ? undefined : values[index];
      if (value === null) {
        if (isFirst) edits.leaveOut(memberStart, cursor.nextMemberStart);
        else edits.leaveOut(comma, cursor.at);
        continue;
      }
      isFirst = false;
      if (value === undefined) continue;
      edits.replace(at, cursor.at, Buffer.from(value));
      values[index] = null;
    }
    let added = "";
    for (let index = 0; index < names.length; index++) {
      if (values[index] === null) continue;
      added += `${isFirst ? "" : ","}"${names[index]!}":${values[index]!}`;
      isFirst = false;
    }
    if (added !== "") edits.replace(cursor.at - 1, cursor.at - 1, Buffer.from(added));
    return edits.applyTo(body);
  }

  private indexAt(cursor: JsonCursor): number {
    for (let index = 0; index < this.names.length; index++)
      if (cursor.isNamed(this.names[index]!)) return index;
    return -1;
  }
}
