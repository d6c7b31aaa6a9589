import type { SurfaceName } from "../../catalog/catalog.ts";
import { type Refusal, refuse } from "../../units/errors/refusal.ts";
import type { Json } from "../json/json.ts";
import type { HostTarget } from "../surface.ts";
import type { CacheOptions } from "./conversation.ts";
import { FIELDS, type NestedField, type Verdict } from "./fields.ts";

/**
 * Collects, for one request on its way into another language, what is left out, and the first thing that
 * cannot be expressed. Readers and writers continue after that, so that none of them has to pass it up; the
 * request is refused in the end.
 */
export class TranslationReport {
  refusal: Refusal | null = null;
  /** The client's, once they are read: its marks may leave their retention to them. */
  cacheOptions: CacheOptions | null = null;
  private readonly left = new Set<string>();
  private readonly readers: TrackedReader[] = [];

  constructor(
    readonly client: SurfaceName,
    readonly host: SurfaceName,
    /** Who is sent it. */
    readonly target: HostTarget,
  ) {}

  /** Fields that were left out, for the client to know. */
  get omitted(): readonly string[] {
    return [...this.left];
  }

  /** Checks every member of the body against its table. */
  judge(json: Json): void {
    const table = FIELDS[this.client];
    for (const [field, value] of Object.entries(json)) {
      if (value === null || value === undefined) continue;
      const verdict = Object.hasOwn(table, field) ? table[field]![this.host]! : UNKNOWN;
      if (verdict.kind === "omit") this.left.add(verdict === UNKNOWN ? this.nameable(field) : field);
      if (verdict.kind === "refuse" && verdict.unless?.(value) !== true) this.cannot(field, verdict.why);
    }
  }

  track(reader: TrackedReader): void {
    this.readers.push(reader);
  }

  /** Once all is read: what no reader wanted is left out by name. */
  leaveUnread(): void {
    for (const reader of this.readers) reader.reportUnread();
  }

  leaveOut(kind: string, member: string): void {
    this.left.add(`${kind}.${this.nameable(member)}`);
  }

  /** The client chose the name, which becomes part of a header. */
  private nameable(name: string): string {
    return this.left.size < MAX_NAMED && PLAIN_NAME.test(name) ? name : "*";
  }

  /** Leaves out a part of a field, as the table has it. */
  omit(field: NestedField): void {
    this.left.add(field);
  }

  /** The host's language cannot express it. */
  cannot(field: string, why: string): void {
    this.refusal ??= refuse(
      "invalid_request",
      `\`${field}\` cannot be sent to this model's host, which speaks the ${this.host} API: ${why}.`,
      { param: field },
    );
  }

  /** The client's own language does not allow it. */
  wrong(field: string, what: string): void {
    this.refusal ??= refuse("invalid_request", `\`${field}\` ${what}.`, { param: field });
  }
}

interface TrackedReader {
  /** Reports each member that was not read. */
  reportUnread(): void;
}

/** Clients and proxies bound their headers. */
const MAX_NAMED = 32;
const PLAIN_NAME = /^\w{1,64}$/;

/** The next field that a client of one host's sends must not end its conversations at all others. */
const UNKNOWN: Verdict = { kind: "omit", why: "the gateway does not know this field" };
