import { inflateSync } from "node:zlib";

/**
 * The objects of a PDF, found by their own marks and not by its table of them, which may point anywhere.
 * To hide something, an attacker must make a reader see another file than this one sees, so whatever is not written
 * plainly makes the whole unreadable: an object that is there twice, encryption, names with escapes, filters
 * other than Flate where text may be. ISO 32000-1, 7.2 to 7.5.
 */
export class PdfObjects {
  private readonly objects = new Map<number, PdfObject>();
  private inflated = 0;
  private charactersRead = 0;
  /** The catalog that every trailer names. */
  root = 0;

  private readonly mostInflated: number;

  private constructor(private readonly file: Buffer) {
    this.mostInflated = Math.min(MAX_INFLATED, INFLATED_AT_ONCE + file.length * MAX_SWELLING);
  }

  /** Null when it cannot be read surely. */
  static read(file: Buffer): PdfObjects | null {
    const read = new PdfObjects(file);
    try {
      read.findPlain();
      read.findPacked();
      return read;
    } catch (error) {
      if (error instanceof Unreadable) return null;
      throw error;
    }
  }

  /** Every dictionary, array or value, as it is written, for a look at each; of a stream, its dictionary. */
  texts(): string[] {
    return [...this.objects.values()].map(({ text }) => text);
  }

  text(number: number): string {
    const { text } = this.object(number);
    this.countRead(text.length);
    return text;
  }

  /** What is in a stream, as Latin-1; throws `Unreadable` where that is unclear. */
  stream(number: number): string {
    const { text, data } = this.object(number);
    if (data === null) throw new Unreadable();
    const content = this.decoded(text, data);
    this.countRead(content.length);
    return content;
  }

  isStream(number: number): boolean {
    return this.object(number).data !== null;
  }

  /** One that is large may be named many thousand times, and be read each time. */
  private countRead(characters: number): void {
    this.charactersRead += characters;
    if (this.charactersRead > MAX_CHARACTERS_READ) throw new Unreadable();
  }

  private object(number: number): PdfObject {
    const found = this.objects.get(number);
    if (found === undefined) throw new Unreadable();
    return found;
  }

  private findPlain(): void {
    const text = this.file.toString("latin1");
    if (/\/Encrypt\b/.test(text)) throw new Unreadable();
    for (const [, number] of text.matchAll(ROOT)) {
      if (this.root !== 0 && this.root !== Number(number)) throw new Unreadable();
      this.root = Number(number);
    }
    if (this.root === 0) throw new Unreadable();
    let end = 0;
    for (const mark of text.matchAll(OBJECT)) {
      // One within another is what one reader finds there and another does not.
      if (mark.index < end || ESCAPED_NAME.test(text.slice(end, mark.index))) throw new Unreadable();
      const from = mark.index + mark[0].length;
      end = offsetOf("endobj", text, from);
      const object = text.slice(from, end);
      const stream = STREAM.exec(object);
      if (stream === null) {
        this.add(Number(mark[1]), { text: object, data: null });
        continue;
      }
      const begin = from + stream.index + stream[0].length;
      const close = offsetOf("endstream", text, begin);
      this.add(Number(mark[1]), {
        text: object.slice(0, stream.index),
        data: this.file.subarray(begin, close),
      });
      end = Math.max(end, close);
    }
    if (ESCAPED_NAME.test(text.slice(end))) throw new Unreadable();
  }

  /** Objects within streams of objects. */
  private findPacked(): void {
    for (const { text, data } of [...this.objects.values()]) {
      if (data === null || !/\/ObjStm\b/.test(text)) continue;
      const first = Number(/\/First\s+(\d+)/.exec(text)?.[1]);
      const content = this.decoded(text, data);
      const numbers = content
        .slice(0, first)
        .trim()
        .split(/\s+/, 2 * MAX_OBJECTS + 1)
        .map(Number);
      if (numbers.length % 2 !== 0 || numbers.some((number) => !Number.isInteger(number)))
        throw new Unreadable();
      const offsets = numbers.filter((_, index) => index % 2 === 1);
      for (const [index, offset] of offsets.entries()) {
        const next = offsets[index + 1] ?? content.length - first;
        if (next < offset) throw new Unreadable();
        this.add(numbers[2 * index]!, { text: content.slice(first + offset, first + next), data: null });
      }
    }
  }

  private add(number: number, object: PdfObject): void {
    if (this.objects.has(number) || this.objects.size >= MAX_OBJECTS) throw new Unreadable();
    if (ESCAPED_NAME.test(object.text)) throw new Unreadable();
    this.objects.set(number, object);
  }

  private decoded(dictionary: string, data: Buffer): string {
    const filters = dictionary.match(/\/Filter\b/g)?.length ?? 0;
    if (filters === 0 && !/\/F\b/.test(dictionary)) return data.toString("latin1");
    if (filters !== 1 || !FLATE.test(dictionary)) throw new Unreadable();
    try {
      const plain = inflateSync(data, { maxOutputLength: this.mostInflated - this.inflated });
      this.inflated += plain.length;
      return plain.toString("latin1");
    } catch {
      throw new Unreadable();
    }
  }
}

/** The file is not written so plainly that everybody reads the same in it. */
export class Unreadable extends Error {
  override name = "Unreadable";
}

interface PdfObject {
  readonly text: string;
  readonly data: Buffer | null;
}

const OBJECT = /(?<![0-9])(\d{1,9})\s+\d{1,5}\s+obj\b/g;
const ROOT = /\/Root\s+(\d{1,9})\s+\d{1,5}\s+R\b/g;
const STREAM = /(?<!end)stream(\r\n|\n|\r|\s)/;
const FLATE = /\/Filter\s*(\/FlateDecode\b(?!\s*\/[A-Z]\w*Decode)|\[\s*\/FlateDecode\s*\])/;
const ESCAPED_NAME = /\/[^\s/<>[\](){}%]*#/;
/** A 7 MB file has as many. */
const MAX_OBJECTS = 200_000;
const MAX_INFLATED = 32 * 1024 * 1024;
/** Text is packed to a tenth at best; what swells a thousand times is there to keep its readers busy. */
const MAX_SWELLING = 32;
const INFLATED_AT_ONCE = 1024 * 1024;
/**
 * Characters, each counted as often as somebody looks at it; an honest file has hardly any looked at twice.
 */
const MAX_CHARACTERS_READ = 2 * MAX_INFLATED;

function offsetOf(word: string, text: string, from: number): number {
  const at = text.indexOf(word, from);
  if (at === -1) throw new Unreadable();
  return at;
}
