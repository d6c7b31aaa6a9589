import type { AttemptRecord } from "../ledger/receipt.ts";
import type { Candidate } from "../routing/candidate.ts";
import { memberNamed } from "../routing/native-fallbacks.ts";
import type { Usage, UsagePart, Writers } from "../surfaces/surface.ts";

/** What an answer says about the models that its host ran for it: see routing/native-fallbacks. */
export interface NativeFallbackAnswer {
  readonly writers?: Writers | undefined;
  readonly usage: Usage | null;
}

/** The models that the host ran, in order, by their positions in the chain; the last one ended the answer. */
export function ranIn(chain: readonly Candidate[], answer: NativeFallbackAnswer): readonly number[] {
  const positionOf = positionsIn(chain, answer);
  const { first = null, hops = [] } = answer.writers ?? {};
  const parts = answer.usage?.parts ?? [];
  const named = [
    ...parts.map(({ model }) => model),
    ...(hops.length === 0 ? [first] : hops.flatMap(({ from, to }) => [from, to])),
  ];
  const ran = [...new Set(named.map(positionOf))];
  const last = positionOf(hops.at(-1)?.to ?? parts.at(-1)?.model ?? first);
  return [...ran.filter((position) => position !== last), last];
}

/** Who ended it, or writes it now. */
export const servingIn = (chain: readonly Candidate[], answer: NativeFallbackAnswer): Candidate =>
  chain[ranIn(chain, answer).at(-1)!]!;

/** Which position in the chain a name in the answer means: unknown ones in the order in which they come. */
export function positionsIn(
  chain: readonly Candidate[],
  { writers, usage }: NativeFallbackAnswer,
): (name: string | null) => number {
  const positions = new Map<string, number>();
  const position = (name: string | null, after: number): number => {
    if (name === null) return 0;
    return positions.getOrInsertComputed(name, () => memberNamed(name, chain, after));
  };
  let at = -1;
  for (const { from, to } of writers?.hops ?? []) at = position(to, position(from, at));
  at = -1;
  for (const { model, isFallback } of usage?.parts ?? [])
    at = position(model, isFallback ? Math.max(at, 0) : at);
  position(writers?.first ?? null, -1);
  return (name) => (name === null ? 0 : (positions.get(name) ?? 0));
}

/** What the models used, each of them all that it did. */
export function partsByPosition(
  chain: readonly Candidate[],
  answer: NativeFallbackAnswer,
): ReadonlyMap<number, readonly UsagePart[]> {
  const positionOf = positionsIn(chain, answer);
  return Map.groupBy(answer.usage?.parts ?? [], ({ model }) => positionOf(model));
}

/** The attempts that one request to the host came to: who declined there, and who served. */
export function nativeFallbackTries(
  tried: AttemptRecord,
  chain: readonly Candidate[],
  answer: NativeFallbackAnswer,
): readonly AttemptRecord[] {
  const ran = ranIn(chain, answer);
  const parts = partsByPosition(chain, answer);
  return ran.map((position, at) => {
    const model = chain[position]!.model.id;
    if (at === ran.length - 1) return { ...tried, model, ...usedBy(parts.get(position), tried) };
    const { host } = tried;
    const detail = "the model declined, and the host went on with the next";
    // How long each took, the host does not say.
    return { host, model, outcome: "declined", ms: 0, detail, ...usedBy(parts.get(position)) };
  });
}

/** The same once the answer has ended: its host may have gone on since it opened. */
export function endedTries(
  tries: readonly AttemptRecord[],
  chain: readonly Candidate[],
  answer: NativeFallbackAnswer,
): readonly AttemptRecord[] {
  const { id } = chain[0]!.route.host;
  const at = tries.findLastIndex(({ host, outcome }) => host === id && outcome === "opened");
  if (at === -1) return tries;
  const known = new Set(tries.filter(isRefusal).map(({ model }) => model));
  const ended = nativeFallbackTries(tries[at]!, chain, answer);
  const all = ended.filter((one) => !(isRefusal(one) && known.has(one.model)));
  return tries.toSpliced(at, 1, ...all);
}

const isRefusal = ({ outcome }: AttemptRecord): boolean => outcome === "declined";

/** For what the gateway reports of refusals itself. */
function usedBy(
  parts: readonly UsagePart[] | undefined,
  { tokens }: Pick<AttemptRecord, "tokens"> = {},
): Pick<AttemptRecord, "tokens"> {
  const own = parts?.at(-1)?.usage ?? tokens;
  return own === undefined ? {} : { tokens: own };
}
