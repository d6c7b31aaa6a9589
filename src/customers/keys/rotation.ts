import type { EpochMs } from "../../units/clock.ts";
import { invalidField, type Refusal, refuse, refused } from "../../units/errors/refusal.ts";
import { type KeyId, newId } from "../../units/id.ts";
import { hashSecret } from "../../units/secret-hash.ts";
import { type Minted, tooManyRecent } from "./creation.ts";
import type { KeyDeps } from "./deps.ts";
import type { Key } from "./key.ts";
import { granted, type KeySpec, loosens } from "./key-spec.ts";
import type { ChangedKey, KeyDecision } from "./key-store.ts";
import { isLive } from "./keyring.ts";
import { type Actor, changedHands, rootOf } from "./root.ts";
import { newApiKey, shownPrefix } from "./secret.ts";

/**
 * Replaces a key with one of the same rotation: limits, counters and expiry carry over; the secret and the id
 * do not. With the recovery secret, the old key ends at once, because it may be in the wrong hands, and so do
 * older keys in their grace: a thief who rotated a stolen key must not keep its grace. The owner need not
 * know which key the thief has now: naming a key that was rotated replaces the one that took its place.
 * Otherwise the old key has its grace. Specification, "States and transitions".
 */
export async function rotate(
  deps: KeyDeps,
  { id: named, balanceId }: Pick<Key, "id" | "balanceId">,
  by: Actor,
): Promise<Rotated | Refusal> {
  const hasCredit = (await deps.spendable.of(balanceId)) > 0;
  let id = named;
  for (let tries = 0; ; tries++) {
    const outcome = await replace(deps, id, by, hasCredit);
    if (!refused(outcome) || by.by !== "recovery" || tries === MAX_RACES) return outcome;
    // The thief may have rotated it, and may do so once more before the next try.
    const successor = await deps.store.activeSuccessor(named);
    if (successor === null) return outcome;
    id = successor.id;
  }
}

/** Rotations of a thief that an owner's may meet, each just before it. */
const MAX_RACES = 8;

async function replace(deps: KeyDeps, id: KeyId, by: Actor, hasCredit: boolean): Promise<Rotated | Refusal> {
  const now = deps.clock.now();
  const secret = newApiKey(deps.random);
  const fresh = {
    id: newId("key", deps.random),
    hash: hashSecret(secret),
    prefix: shownPrefix(secret),
    createdAt: now,
  };
  const change = await changed(deps, id, (key, { balance }, siblings, recentKeys) => {
    if (!isLive(key, now) || key.state !== "active") return spent(key, now);
    const root = rootOf(by, balance, key.root);
    if (root === null) return changedHands();
    const tooMany = tooManyRecent(recentKeys, root, hasCredit);
    if (tooMany !== null) return tooMany;
    const successor = { ...key, ...fresh, root };
    if (by.by === "recovery")
      return { key: { ...key, state: "revoked", expiresAt: now }, successor, endsSiblings: true };
    if (siblings > MAX_GRACE_KEYS) return tooManyInGrace(siblings, deps.settings().graceMs);
    return { key: inGrace(key, now, deps.settings().graceMs), successor };
  });
  return refused(change) ? change : { key: change.successor!, secret, old: change.key };
}

/** Once it is durable, requests read the key again. */
async function changed(deps: KeyDeps, id: KeyId, decide: KeyDecision): Promise<ChangedKey | Refusal> {
  const change = await deps.store.changeKey(id, decide);
  if (!refused(change)) deps.keyring.forget([change.key, ...change.ended], []);
  return change;
}

export interface Rotated extends Minted {
  readonly old: Key;
}

/**
 * Each rotation leaves a key that works for a day: a bound keeps a runaway loop from filling the store with
 * them.
 */
const MAX_GRACE_KEYS = 16;

function inGrace(key: Key, now: EpochMs, graceMs: number): Key {
  const graceEnds = now + graceMs;
  // Grace never prolongs a key that was to expire sooner.
  const expiresAt = (key.expiresAt === null ? graceEnds : Math.min(key.expiresAt, graceEnds)) as EpochMs;
  return { ...key, state: "rotated", expiresAt };
}

function spent(key: Key, now: EpochMs): Refusal {
  const past = isLive(key, now)
    ? "was already rotated"
    : key.state === "revoked"
      ? "is revoked"
      : "has expired";
  return invalidField(
    "id",
    `Key \`${key.id}\` ${past} and cannot be rotated. Rotate the key that replaced it, or create one with POST /v1/keys.`,
  );
}

function tooManyInGrace(siblings: number, graceMs: number): Refusal {
  return refuse(
    "rate_limited",
    `This key was rotated ${siblings - 1} times within its grace window; the most is ${MAX_GRACE_KEYS}. Revoke the old keys, or wait for their grace windows to end.`,
    { retryAfterS: Math.ceil(graceMs / 1_000), shouldRetry: false },
  );
}

/** Ends a key now, for good. Revoking one that is revoked already changes nothing and succeeds. */
export async function revoke(deps: KeyDeps, id: KeyId, by: Actor): Promise<Key | Refusal> {
  const change = await changed(deps, id, (key, { balance }) =>
    rootOf(by, balance) === null ? changedHands() : { key: { ...key, state: "revoked" } },
  );
  return refused(change) ? change : change.key;
}

/** Changes limits, name or expiry. A key that asks for itself may only tighten itself. */
export async function revise(deps: KeyDeps, id: KeyId, spec: KeySpec, by: Actor): Promise<Key | Refusal> {
  const now = deps.clock.now();
  const change = await changed(deps, id, (key, withBudgets) => {
    if (!isLive(key, now)) return ended(key);
    if (rootOf(by, withBudgets.balance) === null) return changedHands();
    const loosening = by.by === "key" ? loosens(key, spec) : graceLoosening(key, spec);
    if (loosening !== null) return loosening;
    const next = granted(key, spec, withBudgets);
    return refused(next) ? next : { key: next };
  });
  return refused(change) ? change : change.key;
}

/** Not even the owner prolongs a key that was rotated: its successor is the key. */
function graceLoosening(key: Key, { expiresAt }: KeySpec): Refusal | null {
  return key.state === "rotated" && expiresAt !== undefined ? loosens(key, { expiresAt }) : null;
}

const ended = ({ id, state }: Key): Refusal =>
  invalidField(
    "id",
    `Key \`${id}\` ${state === "revoked" ? "is revoked" : "has expired"} and cannot be changed.`,
  );
