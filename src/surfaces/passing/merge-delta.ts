import { asObject, type MutableJson } from "../json/json.ts";

/**
 * Adds a delta to what is known: text goes on, lists and objects grow, whatever their names are. All in place:
 * there may be as many of each as tokens.
 */
export function grow(known: MutableJson, more: MutableJson): void {
  for (const [name, value] of Object.entries(more)) {
    // Own members alone: a host may name one like what every object inherits.
    const before = Object.hasOwn(known, name) ? known[name] : undefined;
    if (value === null || value === undefined) {
      if (before === undefined) known[name] = value;
    } else if (typeof value === "string" && !ONCE.has(name)) {
      known[name] = (typeof before === "string" ? before : "") + value;
    } else if (Array.isArray(value)) {
      if (Array.isArray(before)) for (const item of value) before.push(item);
      else known[name] = value;
    } else if (asObject(value) !== null) {
      const inner = asObject(before) ?? {};
      grow(inner, value as MutableJson);
      known[name] = inner;
    } else if (before === undefined || before === null || !ONCE.has(name)) {
      known[name] = value;
    }
  }
}

/** Sent once; every other text grows. */
const ONCE = new Set(["role", "id", "type", "name"]);
