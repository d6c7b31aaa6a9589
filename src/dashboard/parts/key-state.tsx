import type { KeyAnswer } from "../../api/keys.ts";
import { moment } from "../format.ts";

export const works = ({ state }: KeyAnswer): boolean => state === "active" || state === "rotated";

export function KeyState({ of: { state, expires_at } }: { of: KeyAnswer }) {
  const [tone, text] =
    state === "active"
      ? (["good", expires_at === null ? "active" : `active until ${moment(expires_at)}`] as const)
      : state === "rotated"
        ? ([
            "warn",
            `replaced, works until ${expires_at === null ? "it is revoked" : moment(expires_at)}`,
          ] as const)
        : (["plain", state] as const);
  return <span class={`tag ${tone}-tag`}>{text}</span>;
}
