import { MAX_KEYS } from "../../config/host-keys.ts";
import type { HostRow, ModelRow } from "./rows.ts";

/** How the source shares requests between deployments, of which each has one key. */
export interface Share {
  /** The lowest is tried first. */
  readonly order: number;
  /** Relative to others of the same order; null: none is given. */
  readonly weight: number | null;
  readonly rpm: number | null;
  readonly tpm: number | null;
  readonly maxConcurrent: number | null;
}

export const NO_SHARE: Share = { order: 0, weight: null, rpm: null, tpm: null, maxConcurrent: null };

/** What one model has of one host. */
export interface Use {
  readonly host: HostRow;
  readonly model: ModelRow;
  /** One object for all models of a deployment that a pattern names. */
  readonly share: Share;
  /** How the host's id begins. */
  readonly stem: string;
  /** Its place in the source. */
  readonly from: string;
}

interface Pooled {
  readonly hosts: HostRow[];
  /** The id of the host that takes the place of each. */
  readonly ids: ReadonlyMap<string, string>;
  /** `place: why`. */
  readonly leftOut: readonly string[];
}

/**
 * Hosts that differ in their key alone, and serve the same models in the same order, become one host with `keys`. A host
 * with limits gets `keys`, too, because limits are those of a key.
 */
export function pooled(hosts: readonly HostRow[], uses: readonly Use[]): Pooled {
  const groups = Map.groupBy(hosts, (host) => kindOf(host, uses));
  const leftOut: string[] = [];
  const ids = new Map<string, string>();
  const counts = new Map<string, number>();
  const made = [...groups.values()].flatMap(chunks).map((group): HostRow => {
    const { stem } = uses.find(({ host }) => host === group[0])!;
    const count = (counts.get(stem) ?? 0) + 1;
    counts.set(stem, count);
    const id = count === 1 ? stem : `${stem}-${count}`;
    for (const host of group) ids.set(host.id, id);
    return { ...oneOf(group, uses, leftOut), id };
  });
  return { hosts: made, ids, leftOut };
}

const chunks = (group: readonly HostRow[]): HostRow[][] =>
  Array.from({ length: Math.ceil(group.length / MAX_KEYS) }, (_, n) =>
    group.slice(n * MAX_KEYS, (n + 1) * MAX_KEYS),
  );

/** Equal for hosts that may become one. */
function kindOf({ id, api_key, ...row }: HostRow, uses: readonly Use[]): string {
  if (variableOf(api_key) === null) return id;
  const served = uses
    .filter(({ host }) => host.id === id)
    .map(({ model, share: { order, weight } }) => {
      const { host: _, ...route } = model.routes.find(({ host }) => host === id)!;
      return JSON.stringify([model.id, route, order, weight === null]);
    });
  return JSON.stringify([row, served.sort()]);
}

/** The NAME in `${NAME}`; null where the host has no key, or sends it in a header of its own. */
const variableOf = (reference: unknown): string | null =>
  /^\$\{(\w+)\}$/.exec(typeof reference === "string" ? reference : "")?.[1] ?? null;

function oneOf(group: readonly HostRow[], all: readonly Use[], leftOut: string[]): HostRow {
  const usesOf = ({ id }: HostRow) => all.filter(({ host }) => host.id === id);
  const weights = wholeWeights(group.map((host) => weightOf(usesOf(host))));
  const keys = group.map((host, at) => ({
    env: variableOf(host.api_key),
    ...(weights === null ? {} : { weight: weights[at]! }),
    ...limitsOf(usesOf(host), leftOut, variableOf(host.api_key) !== null),
  }));
  const [first] = group;
  const isPlain = keys.length === 1 && Object.keys(keys[0]!).length === 1;
  if (isPlain || keys[0]!.env === null) return first!;
  const { api_key: _, ...row } = first!;
  return { ...row, keys };
}

/** LiteLLM shares by weight, else by what is allowed in a minute. */
const weightOf = ([use]: readonly Use[]): number | null =>
  use === undefined ? null : (use.share.weight ?? use.share.rpm ?? use.share.tpm);

/** From 1 to 1,000, in the same proportions; null where they are equal, or one is not known. */
function wholeWeights(weights: readonly (number | null)[]): number[] | null {
  const known = weights.filter((weight) => weight !== null && weight > 0) as number[];
  const most = Math.max(...known);
  if (known.length < weights.length || known.every((weight) => weight === most)) return null;
  const areWhole = known.every((weight) => Number.isInteger(weight));
  const by = areWhole ? known.reduce(greatestDivisor) : most / MAX_WEIGHT;
  const scale = Math.max(by, most / MAX_WEIGHT);
  return known.map((weight) => Math.max(1, Math.round(weight / scale)));
}

const MAX_WEIGHT = 1_000;

const greatestDivisor = (a: number, b: number): number => (b === 0 ? a : greatestDivisor(b, a % b));

const LIMITS = { rpm: "rpm", tpm: "tpm", max_concurrent: "maxConcurrent" } as const;

/** The sum of its deployments' limits, because a key's limits count all of its models. */
function limitsOf(uses: readonly Use[], leftOut: string[], hasKey: boolean): Record<string, number> {
  const limits: Record<string, number> = {};
  for (const [name, member] of Object.entries(LIMITS)) {
    const limited = uses.filter(({ share }) => share[member] !== null);
    const without = uses.find(({ share }) => share[member] === null);
    if (limited.length === 0) continue;
    const shares = [...new Set(limited.map(({ share }) => share))];
    const whole = Math.floor(shares.reduce((sum, share) => sum + share[member]!, 0));
    if (hasKey && without === undefined && whole >= 1) limits[name] = whole;
    else
      for (const { from } of limited)
        leftOut.push(
          `${from}: ${name}: ${
            hasKey
              ? `a limit of a host's key counts all of its models, and ${without?.model.id ?? "none"} has none`
              : "limits are those of a host's `keys`, and this one has no key or sends it in a header of its own"
          }`,
        );
  }
  return limits;
}
