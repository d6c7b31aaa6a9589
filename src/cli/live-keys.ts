import type { UndoneAnswer } from "../api/claims.ts";
import { table } from "./console.ts";

export interface RevokeKeysOption {
  readonly revokeKeys?: true | undefined;
}

export const revokeKeysIn = ({ revokeKeys }: RevokeKeysOption) => ({ revoke_keys: revokeKeys === true });

/** What still works after a claim was taken back. */
export function liveKeyLines({
  live_keys,
  has_more,
}: Pick<UndoneAnswer, "live_keys" | "has_more">): readonly string[] {
  if (live_keys.length === 0) return ["No key of it works any more."];
  return [
    "All that derives from the claim has ended. Revoke the keys that you do not know of those that still work:",
    ...table(
      ["id", "prefix", "name", "created"],
      live_keys.map(({ id, prefix, name, created_at }) => [id, prefix, name, created_at]),
    ),
    ...(has_more ? ["There are more: `gateway keys list` shows all."] : []),
  ];
}
