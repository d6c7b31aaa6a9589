import { Glob } from "bun";
import { isNode, type Node, parse } from "./syntax.ts";
import table from "./words.json";

/**
 * Words that this repository once used in a sense of its own, with what engineers say instead. Each may appear as
 * often as `words.json` allows, which only ever falls: `bun run words` counts, and lowers it with `--lower`.
 */
export interface Word {
  readonly plainer: string;
  /** Not anywhere, if the word is plain English elsewhere. */
  readonly where: "anywhere" | "names" | "sentence start" | "constant start";
  readonly max: number;
  /** Files that need the word, with the reason. */
  readonly except?: Readonly<Record<string, string>>;
}

export const WORDS = table as Readonly<Record<string, Word>>;

export interface Text {
  readonly path: string;
  readonly text: string;
}

/** How often each word appears: in files' names, sentences of documents, comments and texts, and names in code. */
export function countWords(texts: readonly Text[], words = WORDS): Map<string, Map<string, number>> {
  const counts = new Map(Object.keys(words).map((word) => [word, new Map<string, number>()]));
  for (const { path, text } of texts) {
    const { names, sentences } = path.endsWith(".md")
      ? { names: [], sentences: [text] }
      : partsOf(path, text);
    const inNames = wordsOf([path, ...names]);
    const inSentences = wordsOf(sentences);
    const starts = startsOf(sentences);
    const countIn = {
      names: (word: string) => inNames.get(word) ?? 0,
      anywhere: (word: string) => (inNames.get(word) ?? 0) + (inSentences.get(word) ?? 0),
      "constant start": (word: string) => names.filter((name) => name.startsWith(`${word}_`)).length,
      "sentence start": (word: string) => starts.filter((start) => start === word).length,
    };
    for (const [word, { where, except }] of Object.entries(words)) {
      const count = countIn[where](word);
      if (count > 0 && except?.[path] === undefined) counts.get(word)!.set(path, count);
    }
  }
  return counts;
}

/** Words that appear more often than they may, with what to write instead. */
export const tooFrequent = (texts: readonly Text[], words = WORDS): string[] =>
  [...countWords(texts, words)].flatMap(([word, files]) => {
    const { plainer, max } = words[word]!;
    const count = total(files);
    return count > max
      ? [`"${word}" ${count} times, at most ${max}: write ${plainer} (\`bun run words ${word}\`)`]
      : [];
  });

export const total = (files: ReadonlyMap<string, number>): number =>
  [...files.values()].reduce((sum, count) => sum + count, 0);

/** All code and documents of the repository. */
export const repository = (): Promise<Text[]> =>
  Promise.all(
    ["*.md", "{src,test,bench,scripts,docs}/**/*.{ts,tsx,md}"]
      .flatMap((glob) => [...new Glob(glob).scanSync(ROOT)])
      .filter((path) => !NOT_COUNTED.includes(path))
      .sort()
      .map(async (path) => ({ path, text: await Bun.file(ROOT + path).text() })),
  );

const ROOT = new URL("../../", import.meta.url).pathname;
/** Generated, and full of such words on purpose. */
const NOT_COUNTED = ["docs/surfaces.md", "test/architecture/rules.test.ts"];

/** The names in code, and its comments and those texts that have a space in them. */
function partsOf(path: string, text: string): { names: string[]; sentences: string[] } {
  const { comments, program } = parse(path, text);
  const names: string[] = [];
  const sentences = comments.map(({ value }) => value);
  const walk = (node: Node): void => {
    if (/^(JSX)?Identifier$/.test(node.type)) names.push(node.name as string);
    const value = node.type === "TemplateElement" ? (node.value as { raw: string }).raw : node.value;
    if (
      /^(Literal|JSXText|TemplateElement)$/.test(node.type) &&
      typeof value === "string" &&
      value.includes(" ")
    )
      sentences.push(value);
    for (const value of Object.values(node))
      for (const child of Array.isArray(value) ? value : [value]) if (isNode(child)) walk(child);
  };
  walk(program as unknown as Node);
  return { names, sentences };
}

/** In lower case, `camelCase` and `UPPER_CASE` taken apart. */
function wordsOf(texts: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const [word] of texts.join("\n").matchAll(/[A-Z]?[a-z]+|[A-Z]+(?![a-z])/g)) {
    const lower = word.toLowerCase();
    counts.set(lower, (counts.get(lower) ?? 0) + 1);
  }
  return counts;
}

/** The first word of each sentence, as it is written. */
const startsOf = (texts: readonly string[]): string[] =>
  texts.flatMap((text) =>
    [...text.replace(/^[ \t]*\*+ ?/gm, "").matchAll(/(?:^\s*|\n\s*\n|[.!?:]\s+|[-|] )([A-Z][a-z]+)/g)].map(
      ([, word]) => word!,
    ),
  );
