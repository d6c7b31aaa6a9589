import { type Planning, paidCandidates } from "./candidate.ts";
import { allows } from "./naming.ts";

/**
 * Models that a request could be sent to instead: allowed, priced, and on a host that does not rest. Models
 * whose last request was served come first; models whose last one failed are not named, because they would be
 * said to work.
 */
export function workingAlternatives(
  except: string,
  query: Pick<Planning, "surface" | "allowedModels" | "policy" | "catalog" | "routeState">,
): string[] {
  const { catalog, routeState } = query;
  const proven: string[] = [];
  const untried: string[] = [];
  for (const model of catalog.models.values()) {
    if (proven.length === MAX_ALTERNATIVES) break;
    if (model.id === except || !allows(query, model.id)) continue;
    const candidates = paidCandidates(model, query).filter(({ route }) => routeState.restMs(route) === 0);
    if (candidates.length === 0) continue;
    const ends = candidates.map(({ route }) => routeState.lastAttempt(route));
    if (ends.includes("served")) proven.push(model.id);
    else if (ends.includes(null)) untried.push(model.id);
  }
  return [...proven, ...untried].slice(0, MAX_ALTERNATIVES);
}

/** How many alternatives a message names. */
const MAX_ALTERNATIVES = 3;

export const alternativesSentence = (ids: readonly string[]): string =>
  ids.length === 0
    ? "No other paid model that this key may call works right now."
    : `Working alternatives: ${ids.join(", ")}.`;
