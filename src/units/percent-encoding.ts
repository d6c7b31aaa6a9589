/** What a part of an address stands for; where an escape in it is broken, as in a link that was cut off, the part itself. */
export function unescaped(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
