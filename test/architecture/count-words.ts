/**
 * bun run words           how often each word of the list appears, and how often it may
 * bun run words <word>    in which files, and how often
 * bun run words --lower   writes lower counts into the list
 */
import { countWords, repository, total, WORDS } from "./words.ts";

const [argument] = Bun.argv.slice(2);
const counts = countWords(await repository());

if (argument === "--lower") {
  const lowered = Object.entries(WORDS).map(([word, row]) => [
    word,
    { ...row, max: Math.min(row.max, total(counts.get(word)!)) },
  ]);
  await Bun.write(
    new URL("words.json", import.meta.url),
    `${JSON.stringify(Object.fromEntries(lowered), null, 2)}\n`,
  );
} else if (argument !== undefined) {
  const files = [...(counts.get(argument) ?? [])].sort(([, one], [, other]) => other - one);
  for (const [path, count] of files) console.log(`${String(count).padStart(5)}  ${path}`);
} else {
  for (const [word, { max, where, plainer }] of Object.entries(WORDS))
    console.log(`${word.padEnd(12)} ${total(counts.get(word)!)} of ${max}, ${where}: ${plainer}`);
}
