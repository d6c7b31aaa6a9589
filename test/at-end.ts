/**
 * What the files of a process share, such as a database or a browser, ends with the last of them: see preload.
 */
export function atEnd(end: () => Promise<unknown>): void {
  ENDS.push(end);
}

export async function endAll(): Promise<void> {
  for (const end of ENDS.splice(0)) await end();
}

const ENDS: (() => Promise<unknown>)[] = [];
