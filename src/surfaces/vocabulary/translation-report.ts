import type { SurfaceName } from "../../catalog/catalog.ts";
import { type Refusal, refuse } from "../../errors/refusal.ts";
import { asObject, type Json } from "../json.ts";
import { FIELDS, type NestedField, type Verdict } from "./fields.ts";
import { PARTS } from "./parts.ts";
import { SETTINGS } from "./settings.ts";

/**
 * Collects, for one request on its way into another language, what is left out, and the first thing that
 * cannot be expressed. Readers and writers continue after that, so that none of them has to pass it up; the
 * request is refused in the end.
 */
export class TranslationReport {
  refusal: Refusal | null = null;
  private readonly left = new Set<string>();

  constructor(
    readonly client: SurfaceName,
    readonly host: SurfaceName,
  ) {}

  /** Fields that were left out, for the client to know. */
  get omitted(): readonly string[] {
    return [...this.left];
  }

  /** Checks every member of the body against its table, and the members of its settings against theirs. */
  judge(json: Json): void {
    const table = FIELDS[this.client];
    for (const [field, value] of Object.entries(json)) {
      if (value === null || value === undefined) continue;
      const verdict = Object.hasOwn(table, field) ? table[field]![this.host]! : UNKNOWN;
      if (verdict.kind === "said") this.judgeSettings(field, value);
      if (verdict.kind === "omit") this.left.add(verdict === UNKNOWN ? this.fieldName(field) : field);
      if (verdict.kind === "refuse" && verdict.unless?.(value) !== true) this.cannot(field, verdict.why);
    }
  }

  /**
   * Leaves out the members of a part that are not read, unless they say nothing. A kind that is unknown is
   * refused elsewhere.
   */
  judgePart(kind: unknown, part: Json): void {
    const known = PARTS[this.client].get(kind as string);
    if (known !== undefined) this.leaveUnknown(kind as string, part, known);
  }

  private judgeSettings(path: string, value: unknown): void {
    const known = SETTINGS[this.client].get(path);
    const settings = asObject(value);
    if (known === undefined || settings === null) return;
    this.leaveUnknown(path, settings, known);
    for (const name of known) this.judgeSettings(`${path}.${name}`, settings[name]);
  }

  private leaveUnknown(where: string, given: Json, known: ReadonlySet<string>): void {
    for (const name of Object.keys(given)) {
      if (!known.has(name) && saysSomething(given[name])) this.left.add(this.memberName(where, name));
    }
  }

  /** The client chose the name, which becomes part of a header. */
  private fieldName(name: string): string {
    return this.left.size < MAX_NAMED && PLAIN_NAME.test(name) ? name : "*";
  }

  private memberName(where: string, name: string): string {
    return this.left.size < MAX_NAMED && PLAIN_NAME.test(name) ? `${where}.${name}` : `${where}.*`;
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

/** Clients and proxies bound their headers. */
const MAX_NAMED = 32;
const PLAIN_NAME = /^\w{1,64}$/;

const saysSomething = (value: unknown): boolean =>
  typeof value === "object"
    ? value !== null && Object.keys(value).length > 0
    : value !== undefined && value !== false && value !== "";

/** The next field that a client of one host's sends must not end its conversations at all others. */
const UNKNOWN: Verdict = { kind: "omit", why: "the gateway does not know this field" };
