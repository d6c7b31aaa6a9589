import { estimateJsonText, NO_JSON_TEXT } from "../../tokens/estimate.ts";
import { textOf } from "../json/bytes.ts";
import { type Json, parseObject } from "../json/json.ts";
import { JsonCursor } from "../json/json-cursor.ts";
import { COUNT, endOfDigits, type FoundText, FREE_TEXT, FreeMembers, NUMBER } from "./event-template.ts";
import type { CurrentEvent } from "./sse.ts";

/** What makes an event of a language one of text alone, as nearly all are. */
export interface TextEvents {
  /** The text of an event that brings one text and nothing else; null for any other. */
  soleText(event: Json): SoleText | null;
  /** Members whose values give the event its meaning; null where all of them do. */
  readonly significant: ReadonlySet<string> | null;
  /** The member that numbers the events of a stream. */
  readonly number: string | null;
}

export interface SoleText {
  readonly text: string;
  /** Which of the answer's texts it continues. */
  readonly channel: number;
}

/** Collects the texts of an event: `sole` is the one that is not empty, unless there are several. */
export class TextCollector {
  private found: SoleText | null = null;
  private count = 0;

  add(text: unknown, channel: number): void {
    if (typeof text !== "string" || text === "") return;
    this.count += 1;
    this.found = { text, channel };
  }

  get sole(): SoleText | null {
    return this.count === 1 ? this.found : null;
  }
}

/**
 * Where the sole text of an event stands in its bytes, and which members may change. An `EventTemplate` learns from it.
 * One for all streams, because none waits while it reads an event.
 */
class SoleTextSpan implements FoundText {
  start = 0;
  end = 0;
  channel = 0;
  tokens = 0;
  readonly free = new FreeMembers();

  /** False where the event brings more than one text, or the text is spelt so that it is not found. */
  find(event: CurrentEvent, data: Json, events: TextEvents): boolean {
    const { bytes, dataStart, dataEnd } = event;
    const sole = dataEnd === 0 ? null : events.soleText(data);
    if (sole === null || !this.findText(bytes, dataStart, dataEnd, sole)) return false;
    const { start, end } = this;
    // The same letters may stand elsewhere: only the text itself is another where they are.
    const other = textOf(bytes, dataStart, start) + PROBE + textOf(bytes, end, dataEnd);
    const probed = parseObject(other);
    if (probed === null || events.soleText(probed)?.text !== PROBE) return false;
    this.channel = sole.channel;
    this.tokens = estimateJsonText(bytes, start, end);
    return this.tokens !== NO_JSON_TEXT && this.findFree(event, events);
  }

  private findText(bytes: Uint8Array, from: number, to: number, { text }: SoleText): boolean {
    const spelt = JSON.stringify(text);
    const escaped = spelt.replace(NOT_ASCII, escapeOf);
    return (
      this.findOnce(bytes, from, to, spelt) || (escaped !== spelt && this.findOnce(bytes, from, to, escaped))
    );
  }

  private findOnce(bytes: Uint8Array, from: number, to: number, spelt: string): boolean {
    const length = Buffer.byteLength(spelt);
    const at = Buffer.prototype.indexOf.call(bytes, spelt, from);
    if (at === -1 || at + length > to) return false;
    const next = Buffer.prototype.indexOf.call(bytes, spelt, at + 1);
    if (next !== -1 && next < to) return false;
    this.start = at + 1;
    this.end = at + length - 1;
    return true;
  }

  /** False where a member's name is spelt with an escape, because it may be any member's. */
  private findFree(
    { bytes, dataStart, dataEnd }: CurrentEvent,
    { significant, number }: TextEvents,
  ): boolean {
    const { free } = this;
    free.clear();
    if (significant === null) return true;
    CURSOR.begin(bytes, dataStart, dataEnd);
    CURSOR.enterObject();
    while (CURSOR.nextMember()) {
      if (CURSOR.escapedName !== null) return false;
      const { at: start, isText, name } = CURSOR;
      CURSOR.skip();
      if (name === number) {
        if (isCount(bytes, start, CURSOR.at)) free.add(start, CURSOR.at, COUNT);
      } else if (significant.has(name)) continue;
      else if (isText) free.add(start + 1, CURSOR.at - 1, FREE_TEXT);
      else if (isCount(bytes, start, CURSOR.at)) free.add(start, CURSOR.at, NUMBER);
    }
    return CURSOR.isDone;
  }
}

export const SOLE_TEXT = new SoleTextSpan();

const CURSOR = new JsonCursor();

/** No host writes it. */
const PROBE = "gateway probe \u2063";

/** As hosts in Python spell them. */
const NOT_ASCII = /[\u0080-\uffff]/g;
const escapeOf = (character: string): string => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;

/** A whole number that fits a template's gap. */
const isCount = (bytes: Uint8Array, from: number, to: number): boolean => endOfDigits(bytes, from) === to;
