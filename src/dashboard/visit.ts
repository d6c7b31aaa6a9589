import { Api } from "./api.ts";

/**
 * Who is at the screen. The recovery secret stays in the tab's session storage, so that a reload does not lose it and the
 * closed tab does; API keys are never stored at all. A session lives in a cookie that no script can read.
 */
export interface Visit {
  readonly by: "recovery" | "session";
  readonly api: Api;
}

/** What this tab still knows, or null. A recovery link wins, and leaves the address bar and the history at once. */
export function resumeVisit(storage: Storage, location: Location, history: History): Visit | null {
  const linked = RECOVERY_LINK.exec(location.hash)?.[1];
  if (linked !== undefined) {
    history.replaceState(null, "", location.pathname + location.search);
    return recoveryVisit(storage, decodeURIComponent(linked));
  }
  const kept = storage.getItem(RECOVERY_SLOT);
  return kept === null ? null : { by: "recovery", api: new Api(kept) };
}

export function recoveryVisit(storage: Storage, secret: string): Visit {
  storage.setItem(RECOVERY_SLOT, secret);
  return { by: "recovery", api: new Api(secret) };
}

export function endVisit(storage: Storage): void {
  storage.removeItem(RECOVERY_SLOT);
}

/** The secret inside whatever a person pastes: the secret itself or the whole link. */
export const recoverySecretIn = (text: string): string | null =>
  /or-rec-[1-9A-HJ-NP-Za-km-z]{44}/.exec(text)?.[0] ?? null;

const RECOVERY_LINK = /^#recover=(.+)$/;
const RECOVERY_SLOT = "gateway-recovery";
