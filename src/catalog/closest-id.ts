import type { Catalog } from "./catalog.ts";
import { AUTO_PREFIX, autoVariant, FREE_SUFFIX, SIMULATED_HOST_ID } from "./model-name.ts";

/**
 * The published id that an unknown one was most likely meant to be; null only for an empty catalog. It runs
 * for requests that are refused before any rate limit is looked at, so its cost is bounded: the wanted text
 * is cut, and the edit distance is computed inside a narrow band.
 *
 * In order of confidence: the same name under another author (`gpt-4o` → `openai/gpt-4o`); the longest
 * published name that the wanted one continues (`gpt-4o-2024-08-06` → `openai/gpt-4o`); the fewest edits; the
 * longest common beginning.
 */
export function closestId(name: string, ids: Iterable<string>): string | null {
  const sought = split(name.slice(0, MAX_NAME_CHARACTERS));
  let best: IdMatch | null = null;
  for (const id of ids) best = nearer(best, id, sought);
  return best === null ? null : best.id;
}

/** The name of which `wanted` is a misspelling; null where none is near. For few names. */
export function misspelt(name: string, names: readonly string[]): string | null {
  const id = closestId(name, names);
  return id !== null && nearer(null, id, split(name)).rank <= Rank.Misspelt ? id : null;
}

/** Whether a request may name it: a published model, its free variant, or an automatic route. */
export function isNameable(id: string, { models, auto }: Catalog): boolean {
  if (models.has(id)) return true;
  const variant = autoVariant(id);
  if (variant !== null) return auto.has(variant);
  return id.endsWith(FREE_SUFFIX) && models.has(id.slice(0, -FREE_SUFFIX.length));
}

/** What a request may name: models, in the catalog's order, and then the automatic routes. */
export function* nameableIds({ models, auto }: Pick<Catalog, "models" | "auto">): Generator<string> {
  yield* models.keys();
  for (const variant of auto.keys()) yield `${AUTO_PREFIX}${variant}`;
}

/**
 * The sentences for `unknown_model`: the suggestion and the address of the catalog; before anything is set up,
 * what to set.
 */
export function suggestion(name: string, served: ServedCatalog, baseUrl: string): string {
  const id = closestId(name, nameableIds(served));
  const catalog = `The catalog is at ${baseUrl}/v1/catalog.`;
  const near = id === null ? catalog : `Did you mean \`${id}\`? ${catalog}`;
  const isNew = [...served.hosts.keys()].every((host) => host === SIMULATED_HOST_ID);
  return isNew ? `${near} ${NO_PROVIDER}` : near;
}

type ServedCatalog = Pick<Catalog, "models" | "auto" | "hosts">;

const NO_PROVIDER =
  "No provider is set up here yet: its operator puts a provider's key, such as OPENAI_API_KEY or ANTHROPIC_API_KEY, into the environment and restarts the gateway.";

const MAX_NAME_CHARACTERS = 96;
/** More edits than this are no longer a typo. */
const EDITS_MAX = 5;

interface IdParts {
  readonly author: string;
  readonly name: string;
}

interface IdMatch {
  readonly id: string;
  readonly rank: Rank;
  /** Within a rank, smaller is nearer. */
  readonly distance: number;
}

enum Rank {
  SameName,
  Continued,
  Misspelt,
  Unlike,
}

/** Case and the choice between `.`, `_` and `-` are what people most often get wrong. */
function split(id: string): IdParts {
  const text = id.toLowerCase().replaceAll(/[._]/g, "-");
  const slash = text.indexOf("/");
  return slash === -1
    ? { author: "", name: text }
    : { author: text.slice(0, slash), name: text.slice(slash + 1) };
}

/** Whichever is nearer, the best so far or this one, of which no more is found out than that takes. */
function nearer(best: IdMatch | null, id: string, sought: IdParts): IdMatch {
  const published = split(id);
  const otherAuthor = published.author === sought.author ? 0 : 1;
  const or = (rank: Rank, distance: number): IdMatch =>
    best === null || rank < best.rank || (rank === best.rank && distance < best.distance)
      ? { id, rank, distance }
      : best;
  if (published.name === sought.name) return or(Rank.SameName, otherAuthor);
  if (continues(sought.name, published.name))
    return or(Rank.Continued, otherAuthor - 2 * published.name.length);
  if (best !== null && best.rank < Rank.Misspelt) return best;
  // More would be another word, or further away than the best.
  const few = Math.ceil(sought.name.length / 2) - 1;
  const nearest = best?.rank === Rank.Misspelt ? (best.distance - 1 - otherAuthor) >> 1 : EDITS_MAX;
  const edits = editsWithin(sought.name, published.name, Math.min(EDITS_MAX, few, nearest));
  if (edits !== null) return or(Rank.Misspelt, 2 * edits + otherAuthor);
  return or(Rank.Unlike, otherAuthor * 3 - commonBeginning(sought.name, published.name));
}

const continues = (longer: string, shorter: string): boolean =>
  longer.startsWith(shorter) && /[-:@]/.test(longer.charAt(shorter.length));

function commonBeginning(a: string, b: string): number {
  let length = 0;
  while (length < a.length && length < b.length && a[length] === b[length]) length++;
  return length;
}

/** Levenshtein's distance, or null above `most`; only cells within `most` of the diagonal are visited. */
function editsWithin(a: string, b: string, most: number): number | null {
  if (Math.abs(a.length - b.length) > most) return null;
  let above = new Uint16Array(b.length + 2);
  for (let column = 0; column <= Math.min(b.length, most + 1); column++) above[column] = column;
  let current = new Uint16Array(b.length + 2);
  for (let row = 1; row <= a.length; row++) {
    const from = Math.max(1, row - most);
    const to = Math.min(b.length, row + most);
    let left = from === 1 ? row : most + 1;
    let least = left;
    current[from - 1] = left;
    for (let column = from; column <= to; column++) {
      const swap = a.charCodeAt(row - 1) === b.charCodeAt(column - 1) ? 0 : 1;
      left = Math.min(above[column - 1]! + swap, above[column]! + 1, left + 1);
      current[column] = left;
      if (left < least) least = left;
    }
    if (least > most) return null;
    // Next to what is visited, for the next row.
    current[to + 1] = most + 1;
    [above, current] = [current, above];
  }
  const edits = above[b.length]!;
  return edits > most ? null : edits;
}
