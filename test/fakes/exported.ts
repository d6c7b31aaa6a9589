import { Glob } from "bun";

/** What an export has, read as anybody would: unpacked, a JSON object a line. Files in the order of their names. */
export function exportedLines(files: ReadonlyMap<string, Uint8Array>, kind: string): ExportedLine[] {
  return [...files]
    .filter(([name]) => name.includes(`${kind}/`))
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .flatMap(([, bytes]) => {
      const text = new TextDecoder().decode(Bun.gunzipSync(bytes as Uint8Array<ArrayBuffer>));
      return text
        .split("\n")
        .filter((line) => line !== "")
        .map((line) => JSON.parse(line));
    });
}

// biome-ignore lint/suspicious/noExplicitAny: a line is whatever was exported
export type ExportedLine = Readonly<Record<string, any>>;

/** The files of an export to a folder. */
export async function filesIn(folder: string): Promise<Map<string, Uint8Array>> {
  const files = new Map<string, Uint8Array>();
  for (const name of new Glob("**/*.jsonl.gz").scanSync(folder))
    files.set(name, await Bun.file(`${folder}/${name}`).bytes());
  return files;
}

export const sumOf = (lines: readonly ExportedLine[], member: string): bigint =>
  lines.reduce((sum, line) => sum + BigInt(line[member]), 0n);
