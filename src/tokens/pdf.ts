import { PdfObjects, Unreadable } from "./pdf-objects.ts";

/**
 * The most tokens that a PDF can come to at a host. Hosts show each page to the model as an image, and next to
 * it the text that the page shows (Anthropic "PDF support", OpenAI "File inputs", Gemini "Document
 * understanding"). An image is bounded by what one costs at most. Text is bounded by the strings that the
 * pages' contents show, each as often as it is shown: a file of one kilobyte can show a megabyte, by a
 * content that many pages share, forms within forms, or a letter that stands for a whole sentence. Null where
 * this is not certain.
 */
export function pdfTokenBound(file: Buffer, tokensOfImage: number): number | null {
  const objects = PdfObjects.read(file);
  if (objects === null) return null;
  try {
    const texts = objects.texts();
    const { pages, shown } = new PdfPages(objects).all();
    const aside = texts.reduce((sum, text) => sum + withoutStrings(text).bytes, 0);
    const bound = pages * tokensOfImage + (shown + aside) * bytesOfCharacter(texts, objects);
    return Number.isFinite(bound) ? Math.ceil(bound) : null;
  } catch (error) {
    if (error instanceof Unreadable) return null;
    throw error;
  }
}

interface Shown {
  readonly pages: number;
  /** Bytes of the strings in their contents. */
  readonly shown: number;
}

class PdfPages {
  private readonly nodes = new Map<number, Shown | "open">();
  private readonly contents = new Map<number, number | "open">();
  /** Everything that a name in a content stream may refer to, whichever resources it is looked up in. */
  private readonly named = new Map<string, Set<number>>();
  private readonly forms = new Map<string, number>();
  private depth = 0;

  constructor(private readonly objects: PdfObjects) {
    for (const text of objects.texts()) {
      if (UNSURE.test(text)) throw new Unreadable();
      for (const [, name, number] of text.matchAll(NAMED)) {
        this.named.getOrInsertComputed(name!, () => new Set()).add(Number(number));
        if (this.named.size > MAX_NAMES) throw new Unreadable();
      }
    }
  }

  all(): Shown {
    const catalog = this.objects.text(this.objects.root);
    return this.node(only(catalog, /\/Pages\s+(\d{1,9})\s+\d{1,5}\s+R\b/g, /\/Pages\b/g));
  }

  /** What a node of the tree of pages shows, as often as the tree names it. */
  private node(number: number): Shown {
    const known = this.nodes.get(number);
    if (known === "open" || this.depth > MAX_DEPTH) throw new Unreadable();
    if (known !== undefined) return known;
    this.nodes.set(number, "open");
    this.depth += 1;
    const text = this.objects.text(number);
    const sum = { pages: 0, shown: 0 };
    if (/\/Kids\b/.test(text)) {
      for (const kid of this.references(text, "Kids")) {
        const { pages, shown } = this.node(kid);
        sum.pages += pages;
        sum.shown += shown;
      }
    } else {
      sum.pages = 1;
      if (/\/Contents\b/.test(text)) {
        for (const content of this.references(text, "Contents")) sum.shown += this.content(content);
      }
    }
    this.depth -= 1;
    this.nodes.set(number, sum);
    return sum;
  }

  /** Bytes of the strings that a content shows, those of the forms in it included. */
  private content(number: number): number {
    const known = this.contents.get(number);
    if (known === "open" || this.depth > MAX_DEPTH) throw new Unreadable();
    if (known !== undefined) return known;
    this.contents.set(number, "open");
    this.depth += 1;
    const { bytes: own, rest } = withoutStrings(this.objects.stream(number));
    let bytes = own;
    // Within a comment or the data of an image, what looks like a string is none.
    if (/%|\bID\s/.test(rest)) throw new Unreadable();
    let drawn = 0;
    for (const [, name] of rest.matchAll(DRAWN)) {
      bytes += this.form(name!);
      drawn += 1;
    }
    // A name that this does not find, another reader might.
    if (drawn !== countOf(/\bDo\b/g, rest)) throw new Unreadable();
    this.depth -= 1;
    this.contents.set(number, bytes);
    return bytes;
  }

  private form(name: string): number {
    const known = this.forms.get(name);
    if (known !== undefined) return known;
    let most = 0;
    for (const number of this.named.get(name) ?? []) {
      const isForm = this.objects.isStream(number) && /\/Form\b/.test(this.objects.text(number));
      if (isForm) most = Math.max(most, this.content(number));
    }
    this.forms.set(name, most);
    return most;
  }

  /** The member is a reference, a list of them, or a reference to such a list. */
  private references(text: string, member: string): number[] {
    const mark = new RegExp(`/${member}\\b`, "g");
    if (countOf(mark, text) !== 1) throw new Unreadable();
    const list = new RegExp(`/${member}\\s*\\[([^\\]]*)\\]`).exec(text);
    if (list !== null) return referencesIn(list[1]!);
    const number = only(text, new RegExp(`/${member}\\s+(\\d{1,9})\\s+\\d{1,5}\\s+R\\b`, "g"), mark);
    if (member === "Contents" && this.objects.isStream(number)) return [number];
    const far = /^\s*\[([^\]]*)\]\s*$/.exec(this.objects.text(number));
    if (far === null) throw new Unreadable();
    return referencesIn(far[1]!);
  }
}

/** Deep enough for any page tree; forms are rarely nested more than three deep. */
const MAX_DEPTH = 64;
const MAX_NAMES = 50_000;
/** Forms to fill in, and texts that stand in the place of others, are shown in ways of their own. */
const UNSURE = /\/(AP|XFA|AcroForm|ActualText|usecmap|UseCMap)\b/;
const NAMED = /\/([^\s/<>[\](){}%]+)\s+(\d{1,9})\s+\d{1,5}\s+R\b/g;
const DRAWN = /\/([^\s/<>[\](){}%#]+)\s+Do\b/g;

function referencesIn(list: string): number[] {
  const found: number[] = [];
  for (const [, number] of list.matchAll(REFERENCE)) found.push(Number(number));
  if (list.replaceAll(REFERENCE, "").trim() !== "") throw new Unreadable();
  return found;
}

const REFERENCE = /(?<!\d)(\d{1,9})\s+\d{1,5}\s+R\b/g;

function only(text: string, pattern: RegExp, mark: RegExp): number {
  if (countOf(pattern, text) !== 1 || countOf(mark, text) !== 1) throw new Unreadable();
  return Number(pattern.exec(text)![1]);
}

/** Without keeping them: there may be millions. */
function countOf(pattern: RegExp, text: string): number {
  let count = 0;
  for (const _ of text.matchAll(pattern)) count += 1;
  return count;
}

/**
 * Bytes within strings, their escapes counted as they are written, and what is not within strings. ISO
 * 32000-1, 7.3.4.
 */
function withoutStrings(content: string): { bytes: number; rest: string } {
  let bytes = 0;
  let depth = 0;
  let rest = "";
  let from = 0;
  for (let at = 0; at < content.length; at++) {
    const code = content.charCodeAt(at);
    if (depth > 0) {
      bytes += 1;
      if (code === BACKSLASH) at += 1;
      else if (code === OPEN) depth += 1;
      else if (code === CLOSE && --depth === 0) from = at + 1;
    } else if (code === OPEN) {
      rest += content.slice(from, at);
      depth = 1;
    } else if (code === LESS) {
      HEX.lastIndex = at;
      const hex = HEX.exec(content);
      if (hex !== null) {
        bytes += hex[1]!.length / 2;
        rest += content.slice(from, at);
        from = HEX.lastIndex;
        at = from - 1;
      } else if (content.charCodeAt(++at) !== LESS) throw new Unreadable();
    }
  }
  // It may go on in the next content of the page.
  if (depth > 0) throw new Unreadable();
  return { bytes, rest: rest + content.slice(from) };
}

const [OPEN, CLOSE, LESS, BACKSLASH] = [0x28, 0x29, 0x3c, 0x5c];
const HEX = /<([0-9A-Fa-f\s]*)>/y;

/** The most bytes of UTF-8 that one byte of a string can stand for, in any of the fonts. */
function bytesOfCharacter(texts: readonly string[], objects: PdfObjects): number {
  // Two bytes a letter, and no letter above three; elsewhere one byte may be a sign of three, or a ligature
  // of three letters.
  let most = texts.some(isNarrowFont) ? 3 : 1.5;
  for (const text of texts) {
    if (/\/Differences\b/.test(text) && (LONG_NAME.test(text) || /\/Differences\s*[^\s[]/.test(text))) {
      throw new Unreadable();
    }
    for (const [, number] of text.matchAll(/\/ToUnicode\s+(\d{1,9})\s+\d{1,5}\s+R\b/g)) {
      most = Math.max(most, expansionOf(objects.stream(Number(number))));
    }
  }
  return most;
}

/** A byte of a string may be a letter. */
const isNarrowFont = (text: string): boolean =>
  /\/(Type1|MMType1|TrueType|Type3)\b/.test(text) ||
  (/\/Type0\b/.test(text) && !/\/Encoding\s*\/Identity-[HV]\b/.test(text));

/** A glyph's name that spells more than three letters. */
const LONG_NAME = /\/(uni[0-9A-Fa-f]{5,}|[A-Za-z0-9]+(_[A-Za-z0-9]+){3,})/;

/** The longest text in a table from codes to Unicode, over its shortest code. */
function expansionOf(table: string): number {
  if (/\busecmap\b/.test(table)) throw new Unreadable();
  let shortest = Number.POSITIVE_INFINITY;
  for (const code of stringsIn(table, "codespacerange")) shortest = Math.min(shortest, code.length);
  let longest = 0;
  for (const text of stringsIn(table, "bfchar")) longest = Math.max(longest, utf8BytesOf(text));
  // A range's last letter counts on from the one that is written.
  for (const text of stringsIn(table, "bfrange")) {
    longest = Math.max(longest, utf8BytesOf(text.subarray(0, -2)) + BYTES_OF_LETTER);
  }
  return longest / (Number.isFinite(shortest) ? Math.max(1, shortest) : 1);
}

/** Hexadecimal strings in the sections of this name. */
function* stringsIn(table: string, section: string): Generator<Buffer> {
  const [begin, end] = [`begin${section}`, `end${section}`];
  for (let at = table.indexOf(begin); at !== -1; ) {
    const close = table.indexOf(end, at);
    const next = table.indexOf(begin, at + begin.length);
    if (close === -1 || (next !== -1 && next < close)) throw new Unreadable();
    for (const [, hex] of table.slice(at, close).matchAll(/<([0-9A-Fa-f\s]*)>/g)) {
      yield Buffer.from(hex!.replaceAll(/\s/g, ""), "hex");
    }
    at = next;
  }
}

/** In UTF-8, of one unit of UTF-16. */
const BYTES_OF_LETTER = 3;

function utf8BytesOf(utf16: Buffer): number {
  const whole = Buffer.from(utf16.subarray(0, utf16.length & ~1));
  return Buffer.byteLength(whole.swap16().toString("utf16le"));
}
