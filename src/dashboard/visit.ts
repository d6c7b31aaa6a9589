import { unescaped } from "../units/percent-encoding.ts";
import { Api, ApiRefusal } from "./api.ts";

/**
 * Who is at the screen. The recovery secret stays in the tab's session storage, so that a reload does not
 * lose it and the closed tab does; API keys are never stored at all. A session lives in a cookie that no
 * script can read.
 */
export interface Visit {
  readonly by: "recovery" | "session";
  readonly api: Api;
}

/** What the address, or the browser, knows of the visitor. */
export type Arrival =
  /** `balance` is the one to begin with, of an account that has several. */
  | { readonly at: "inside"; readonly visit: Visit; readonly balance?: string | null }
  | { readonly at: "link"; readonly token: string }
  | { readonly at: "recovery"; readonly secret: string }
  | { readonly at: "outside"; readonly turnedAway: Visit["by"] | null };

/**
 * A link comes before what the browser knows, and leaves the address bar and the history at once. It changes
 * nothing by itself: anybody can send somebody a link into a balance or an account of theirs.
 */
export async function arrive(storage: Storage, location: Location, history: History): Promise<Arrival> {
  const link = linkIn(location.hash);
  if (link !== null) {
    history.replaceState(null, "", location.pathname + location.search);
    return link;
  }
  const visit = await presentVisit(storage);
  return visit === null ? { at: "outside", turnedAway: null } : { at: "inside", visit };
}

/** The visitor whom the browser knows already. */
export async function presentVisit(storage: Storage): Promise<Visit | null> {
  const kept = storage.getItem(RECOVERY_SLOT);
  return kept === null ? cookieVisit() : { by: "recovery", api: new Api(kept) };
}

export const hasLink = (hash: string): boolean => linkIn(hash) !== null;

export function recoveryVisit(storage: Storage, secret: string): Visit {
  storage.setItem(RECOVERY_SLOT, secret);
  return { by: "recovery", api: new Api(secret) };
}

/**
 * After signing in: by the cookie that came with the session. A browser keeps no such cookie for a plain http
 * address that is not this machine's own; then the session is held in memory for as long as the page is open.
 */
export async function sessionVisit(session: string): Promise<Visit> {
  return (await cookieVisit()) ?? { by: "session", api: new Api(session) };
}

export async function endVisit(visit: Visit, storage: Storage): Promise<void> {
  storage.removeItem(RECOVERY_SLOT);
  if (visit.by === "session") await visit.api.on(null).post("v1/auth/logout");
}

/** The secret inside whatever a person pastes: the secret itself or the whole link. */
export const recoverySecretIn = (text: string): string | null =>
  /or-rec-[1-9A-HJ-NP-Za-km-z]{44}/.exec(text)?.[0] ?? null;

async function cookieVisit(): Promise<Visit | null> {
  const api = new Api(null);
  try {
    await api.get("v1/me");
    return { by: "session", api };
  } catch (error) {
    if (error instanceof ApiRefusal && error.status === 401) return null;
    throw error;
  }
}

function linkIn(hash: string): Arrival | null {
  const [, kind, value] = /^#(recover|signin)=(.+)$/.exec(hash) ?? [];
  if (value === undefined) return null;
  const secret = unescaped(value);
  return kind === "recover" ? { at: "recovery", secret } : { at: "link", token: secret };
}

const RECOVERY_SLOT = "gateway-recovery";
