import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** A case that was found wrong, and what was wrong with it. */
export interface Found<Case> {
  readonly case: Case;
  readonly wrong: string;
}

const FOLDER = join(import.meta.dir, "corpus");
export type Kind = "answers" | "requests" | "sockets";

/** What was found wrong once: it is run before anything else, for ever. */
export const corpus = <Case>(kind: Kind): Case[] =>
  readdirSync(join(FOLDER, kind))
    .filter((name) => name.endsWith(".json"))
    .sort()
    .map((name) => JSON.parse(readFileSync(join(FOLDER, kind, name), "utf8")));

/** Keeps a case in the corpus, under a name made of what it is. */
export function keep(kind: Kind, one: unknown): string {
  const text = JSON.stringify(one, null, 1);
  const name = `${new Bun.CryptoHasher("sha256").update(text).digest("hex").slice(0, 12)}.json`;
  writeFileSync(join(FOLDER, kind, name), `${text}\n`);
  return join("test/fuzz/corpus", kind, name);
}

/** Runs cases a few at a time, in their order. */
export async function inParallel<Case>(
  cases: readonly Case[],
  most: number,
  run: (one: Case) => Promise<void>,
): Promise<void> {
  let next = 0;
  const runner = async () => {
    while (next < cases.length) await run(cases[next++]!);
  };
  await Promise.all(Array.from({ length: most }, runner));
}

/** Resolves to "hang" where nothing has come for so long that nothing will. */
export async function unlessItHangs<T>(running: Promise<T>): Promise<T | "hang"> {
  let timer: Timer | undefined;
  const hang = new Promise<"hang">((resolve) => {
    timer = setTimeout(() => resolve("hang"), HANG_MS);
  });
  try {
    return await Promise.race([running, hang]);
  } finally {
    clearTimeout(timer);
  }
}

/** Beyond all that a slow machine, and the limits that the gateway is given here, could take. */
const HANG_MS = 60_000;
