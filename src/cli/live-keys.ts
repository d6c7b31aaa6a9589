import type { UndoneAnswer } from "../api/claims.ts";
import { tableOf } from "./console.ts";

/** What still works after a claim was taken back. */
export function liveKeyLines({
  live_keys,
  has_more,
}: Pick<UndoneAnswer, "live_keys" | "has_more">): readonly string[] {
  if (live_keys.length === 0) return ["No key of it works any more."];
  return [
    "All that derives from the claim has ended. Revoke the keys that you do not know of those that still work:",
    ...tableOf({ id: "id", prefix: "prefix", name: "name", created: "created_at" }, live_keys),
    ...(has_more ? ["There are more: `gateway keys list` shows all."] : []),
  ];
}
