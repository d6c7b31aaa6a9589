import type { Route } from "../catalog/catalog.ts";
import { boundedCache } from "../units/bounded-cache.ts";
import type { BalanceId } from "../units/id.ts";
import type { Candidate, Planning } from "./candidate.ts";

/**
 * Hosts that fall back by themselves (`fallbacks: native`) get the client's `fallbacks` if they serve all of its models. Such a
 * host can go on with the next model in the middle of an answer, and bills each model that it ran (decision 28).
 */
export function withNativeFallbacks(
  candidates: readonly Candidate[],
  all: readonly Candidate[],
  ids: readonly string[],
  { model: requested, overrides, routeState, by }: Planning,
): readonly Candidate[] {
  if (!overrides.mayFallBackNatively || ids.length === 0 || ids.length > MAX_NATIVE_FALLBACKS)
    return candidates;
  return candidates.map((candidate) => {
    const { route, model, hostSurface, isFallback } = candidate;
    const mayGoOn = route.host.fallbacks === "native" && hostSurface === "messages";
    if (!mayGoOn || model.id !== requested || isFallback === true) return candidate;
    const nativeFallbacks = ids.flatMap((id) => {
      const next = all.find((other) => other.model.id === id && other.route.host.id === route.host.id);
      return next === undefined ? [] : [next];
    });
    const takesAll = nativeFallbacks.length === ids.length;
    return takesAll && routeState.takesFallbacks(route, nativeFallbacks.map(routeOf), by)
      ? { ...candidate, nativeFallbacks }
      : candidate;
  });
}

/** Anthropic's own limit ("Refusals and fallback"). */
const MAX_NATIVE_FALLBACKS = 3;

export const routeOf = ({ route }: Candidate): Route => route;

/** The candidate without its host's own fallbacks: the gateway then falls back itself. */
export function withoutNativeFallbacks(candidate: Candidate): Candidate {
  const { nativeFallbacks, ...own } = candidate;
  return nativeFallbacks === undefined ? candidate : own;
}

/** The models that may write a part of the answer, in order. */
export const chainOf = (candidate: Candidate): readonly Candidate[] => [
  candidate,
  ...(candidate.nativeFallbacks ?? []),
];

/**
 * Which of the models a name in the host's answer means; null: the requested one. Hosts use canonical ids, which may have a
 * date that the requested name lacks. An unknown name means the model after `after`, because hosts try them in order.
 */
export function memberNamed(name: string | null, chain: readonly Candidate[], after = -1): number {
  if (name === null) return 0;
  const exact = chain.findIndex(({ route }) => route.model === name);
  if (exact !== -1) return exact;
  const alike = chain.findIndex(({ route }) => undated(route.model) === undated(name));
  return alike !== -1 ? alike : Math.min(after + 1, chain.length - 1);
}

const undated = (name: string): string => name.replace(/-(\d{8}|\d{4}-\d\d-\d\d|latest)$/, "");

/**
 * Fallbacks that a host has refused, which is its own list. A later version of it may be another. By balance, because a host's
 * refusal may be about what one sender's request says of them.
 */
export class RefusedFallbacks {
  private readonly untilMs = boundedCache<string, number>(MAX_KEPT);

  refused(route: Route, next: readonly Route[], by: BalanceId, nowMs: number): void {
    this.untilMs.set(nameOf(route, next, by), nowMs + KEPT_MS);
  }

  has(route: Route, next: readonly Route[], by: BalanceId, nowMs: number): boolean {
    return nowMs < (this.untilMs.peek(nameOf(route, next, by)) ?? 0);
  }
}

const nameOf = ({ host, model }: Route, next: readonly Route[], by: BalanceId): string =>
  [by, host.id, model, ...next.map((route) => route.model)].join("\n");

const KEPT_MS = 600_000;
const MAX_KEPT = 1_000;
