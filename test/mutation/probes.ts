import type { Mutant } from "./mutants.ts";

/** The source, which notes in a file whenever it comes to where one of these mutants is. */
export function withProbes(source: string, probes: ReadonlyMap<number, Mutant>, log: string): string {
  // An outer one opens before and closes behind the inner ones.
  const nested = [...probes].sort(([, a], [, b]) => a.start - b.start || b.end - a.end);
  const opening = nested.map(([number, { start, text }]) => ({
    at: start,
    text: text === ";" ? `{reached__(${number});` : `(reached__(${number}),`,
  }));
  const closing = nested
    .reverse()
    .map(({ 1: { end, text } }) => ({ at: end, text: text === ";" ? "}" : ")" }));
  let probed = "";
  let done = 0;
  // What closes at a place closes before anything opens there.
  for (const { at, text } of [...closing, ...opening].sort((a, b) => a.at - b.at)) {
    probed += source.slice(done, at) + text;
    done = at;
  }
  return `${probed}${source.slice(done)}\n${noting(log)}`;
}

/** The first time in each process and thread. */
const noting = (log: string): string => `
function reached__(number) {
  const seen = (globalThis.reached__ ??= new Set());
  if (seen.has(number)) return;
  seen.add(number);
  process.getBuiltinModule("node:fs").appendFileSync(${JSON.stringify(log)}, number + "\\n");
}
`;
