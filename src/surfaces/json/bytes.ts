/**
 * Node's methods of `Buffer` on bytes as a socket gives them. Small arrays live inside JavaScriptCore's heap;
 * to make a `Buffer` of one, or a view on a part of it, moves it out of there, which costs three times as
 * much as to copy it.
 */
export const textOf = (bytes: Uint8Array, from: number, to: number): string =>
  Buffer.prototype.toString.call(bytes, "utf8", from, to);

export const contains = (bytes: Uint8Array, part: Uint8Array): boolean =>
  Buffer.prototype.includes.call(bytes, part);

export function containsOne(bytes: Uint8Array, parts: readonly Uint8Array[]): boolean {
  for (const part of parts) if (contains(bytes, part)) return true;
  return false;
}

/** Whether the bytes from `at` on are those of `part` between `from` and `to`. */
export function equals(bytes: Uint8Array, at: number, part: Uint8Array, from: number, to: number): boolean {
  if (at + to - from > bytes.length) return false;
  if (to - from > SHORT)
    return Buffer.prototype.compare.call(bytes, part, from, to, at, at + to - from) === 0;
  for (let index = from; index < to; index++) if (bytes[at + index - from] !== part[index]) return false;
  return true;
}

/** Up to so many bytes, a native comparison takes longer than a loop. */
const SHORT = 48;

export function copyInto(
  target: Uint8Array,
  at: number,
  bytes: Uint8Array,
  from: number,
  to: number,
): number {
  if (to - from > SHORT) return Buffer.prototype.copy.call(bytes, target, at, from, to);
  for (let index = from; index < to; index++) target[at + index - from] = bytes[index]!;
  return to - from;
}

/** Half of what `Buffer.from` takes, and a short array lives inside JavaScriptCore's heap. */
export const bytesOf = (text: string): Uint8Array => UTF8.encode(text);

const UTF8 = new TextEncoder();

export const joined = (parts: readonly Uint8Array[]): Uint8Array =>
  parts.length === 1 ? parts[0]! : Buffer.concat(parts);

export const NO_BYTES: Uint8Array = new Uint8Array();

/** Nobody reads the bytes again: their memory is free at once, and not at some later collection. */
export const freeMemory = (bytes: Uint8Array): void => void (bytes.buffer as ArrayBuffer).transfer(0);

export function replaceSpan(bytes: Uint8Array, start: number, end: number, by: Uint8Array): Uint8Array {
  const replaced = new Uint8Array(bytes.length + by.length - (end - start));
  copyInto(replaced, 0, bytes, 0, start);
  replaced.set(by, start);
  copyInto(replaced, start + by.length, bytes, end, bytes.length);
  return replaced;
}
