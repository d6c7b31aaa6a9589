import { asObject, asText, type Json, type MutableJson } from "../json/json.ts";
import type { AnswerFormat, CacheMark, CacheOptions, MarkRetention, TextPart } from "./conversation.ts";
import type { NestedField } from "./fields.ts";
import type { TranslationReport } from "./translation-report.ts";

/**
 * Reads an object of a client's request, each member of its one type, and tracks which were read: what is left in
 * the end was not translated, which a header reports to the client. Absent and null are the same. Refusals name the path.
 */
export class ObjectReader {
  private readonly taken: string[] = [];
  private readonly kind: string;
  private isLeftOut = false;

  constructor(
    private readonly json: Json,
    readonly report: TranslationReport,
    /** Where it stands in the body; empty for the body itself, whose fields have a table of their own (fields). */
    private readonly path = "",
    /** What it is, in the report of members that were not read. */
    kind: unknown = "",
  ) {
    this.kind = asText(kind);
    if (path !== "") report.track(this);
  }

  /** A member of any type, as it came. */
  take(name: string): unknown {
    const value = this.json[name] ?? null;
    if (value !== null) this.taken.push(name);
    return value;
  }

  /** It says what the other members are, so it counts as read. */
  get type(): unknown {
    return this.json.type ?? null;
  }

  /** The members with these names that are there, as they came. */
  pick(names: readonly string[]): Json {
    const picked: MutableJson = {};
    for (const name of names) {
      const value = this.take(name);
      if (value !== null) picked[name] = value;
    }
    return picked;
  }

  number(name: string): number | null {
    const value = this.take(name);
    return value === null || typeof value === "number" ? value : this.wrong(name, "must be a number");
  }

  boolean(name: string): boolean | null {
    const value = this.take(name);
    return value === null || typeof value === "boolean" ? value : this.wrong(name, "must be true or false");
  }

  text(name: string): string | null {
    const value = this.take(name);
    return value === null || typeof value === "string" ? value : this.wrong(name, "must be a string");
  }

  /** A text without which nothing can be said. */
  neededText(name: string): string {
    return this.text(name) ?? this.wrong(name, "must be a string") ?? "";
  }

  texts(name: string): string[] {
    const value = this.take(name) ?? [];
    const texts = Array.isArray(value) ? value : [value];
    if (texts.every((text) => typeof text === "string")) return texts;
    return this.wrong(name, "must be a string or an array of strings") ?? [];
  }

  /** An object of the client's own, such as a schema, into which nobody looks. */
  whole(name: string): Json | null {
    const value = this.take(name);
    return value === null ? null : (asObject(value) ?? this.wrong(name, "must be an object"));
  }

  object(name: string, kind?: string): ObjectReader | null {
    return this.whole(name) && this.objectAmong(name, kind);
  }

  /** The same where the member may be something else instead. */
  objectAmong(name: string, kind = this.path === "" ? name : `${this.kind}.${name}`): ObjectReader | null {
    const object = asObject(this.take(name));
    return object && new ObjectReader(object, this.report, this.pathOf(name), kind);
  }

  /** An object; absent, it has no members, and those that are needed are missed by their paths. */
  inner(name: string, kind?: string): ObjectReader {
    return this.object(name, kind) ?? new ObjectReader({}, this.report, this.pathOf(name));
  }

  /** The objects of a list. */
  list(name: string, kind: Kind = `${name}[]`): ObjectReader[] {
    return this.items(this.take(name), this.pathOf(name), kind);
  }

  /** The same of a list that stands elsewhere in the body. */
  items(list: unknown, path: string, kind: Kind): ObjectReader[] {
    if (!Array.isArray(list)) {
      if (list !== null) this.report.wrong(path, "must be an array");
      return [];
    }
    return list.map((value, at) => {
      const item = asObject(value);
      if (item === null) this.report.wrong(`${path}[${at}]`, "must be an object");
      const named = typeof kind === "string" ? kind : kind(item ?? {});
      return new ObjectReader(item ?? {}, this.report, `${path}[${at}]`, named);
    });
  }

  /** What somebody says: a text, or parts that each language reads in its own way; nothing is said by none. */
  parts<Part>(name: string, readPart: (part: ObjectReader) => Part[]): (Part | TextPart)[] {
    const value = this.take(name);
    if (typeof value === "string") return [{ kind: "text", text: value, cache: null }];
    if (value !== null && !Array.isArray(value))
      return this.wrong(name, "must be a string or an array") ?? [];
    return this.list(name, typeOf).flatMap(readPart);
  }

  /** The same where something has to be said. */
  neededParts<Part>(name: string, readPart: (part: ObjectReader) => Part[]): (Part | TextPart)[] {
    if (this.take(name) === null) this.wrong(name, "must be a string or an array");
    return this.parts(name, readPart);
  }

  textParts(name: string): TextPart[] {
    return this.parts(name, (part) => {
      if (part.type !== "text") part.wrong("type", "must be text");
      return [part.textPart()];
    });
  }

  textPart(): TextPart {
    return { kind: "text", text: this.neededText("text"), cache: this.cacheMark() };
  }

  /** Anthropic's or OpenAI's, on a part, a message or a tool. */
  cacheMark(): CacheMark {
    const control = this.objectAmong("cache_control");
    const breakpoint = this.objectAmong("prompt_cache_breakpoint");
    if (control !== null) return control.retention(["5m", "1h"]) ?? "5m";
    if (breakpoint === null) return null;
    breakpoint.skip("mode");
    return breakpoint.retention(["30m", "12h"]) ?? this.report.cacheOptions?.retention ?? "30m";
  }

  /** Anthropic's on the whole request, which has to be an object. */
  wholeMark(): CacheMark {
    return this.whole("cache_control") && this.cacheMark();
  }

  /** OpenAI's, on the whole request: what marks do not say of themselves. To be read before them. */
  cacheOptions(): CacheOptions | null {
    const options = this.object("prompt_cache_options");
    if (options === null) return null;
    const mode = options.take("mode");
    if (mode !== null && mode !== "implicit" && mode !== "explicit")
      options.wrong("mode", "must be implicit or explicit");
    const read = { mode: mode as CacheOptions["mode"], retention: options.retention(["30m", "12h"]) };
    if (options.boolean("prewarm") === true)
      options.cannot("prewarm", "it cannot prepare its cache without an answer, which would be charged");
    this.report.cacheOptions = read;
    return read;
  }

  private retention(known: readonly MarkRetention[]): MarkRetention | null {
    const ttl = this.take("ttl");
    const retention = known.find((one) => one === ttl) ?? null;
    if (ttl !== null && retention === null) this.wrong("ttl", `must be ${known.join(" or ")}`);
    return retention;
  }

  /** What an answer must be, in OpenAI's languages; `nested` is the member that its schema is in, if any. */
  answerFormat(name: string, nested: string | null): AnswerFormat | null {
    const format = this.object(name);
    if (format === null || format.type === "text") return null;
    if (format.type === "json_object") return { kind: "json_object" };
    if (format.type !== "json_schema")
      return format.wrong("type", "must be text, json_object or json_schema");
    const named = nested === null ? format : format.inner(nested);
    return {
      kind: "json_schema",
      name: named.text("name"),
      description: named.text("description"),
      schema: named.whole("schema") ?? { type: "object" },
      strict: named.boolean("strict"),
    };
  }

  /** Whether any of them is there. */
  hasAny(names: readonly string[]): boolean {
    return names.filter((name) => this.take(name) !== null).length > 0;
  }

  /** Members that mean nothing to a model, or are heeded elsewhere. */
  skip(...names: readonly string[]): void {
    this.taken.push(...names);
  }

  /** All of it is left out. */
  leaveOut(field: NestedField): void {
    this.isLeftOut = true;
    this.report.omit(field);
  }

  /** The client's own language does not allow it. */
  wrong(name: string, what: string): null {
    this.report.wrong(this.pathOf(name), what);
    return null;
  }

  /** The host's language cannot express the member, or without a name all of it. */
  cannot(name: string | null, why: string): void {
    this.report.cannot(name === null ? this.path : this.pathOf(name), why);
  }

  /** Tells of every member that nobody has read, unless it says nothing. */
  reportUnread(): void {
    if (this.isLeftOut) return;
    for (const name in this.json) {
      if (name !== "type" && !this.taken.includes(name) && saysSomething(this.json[name]))
        this.report.leaveOut(this.kind, name);
    }
  }

  private pathOf(name: string): string {
    return this.path === "" ? name : `${this.path}.${name}`;
  }
}

/** The kind of all items, or of each. */
type Kind = string | ((item: Json) => unknown);

const typeOf = ({ type }: Json): unknown => type;

const saysSomething = (value: unknown): boolean =>
  typeof value === "object"
    ? value !== null && Object.keys(value).length > 0
    : value !== undefined && value !== false && value !== "";
