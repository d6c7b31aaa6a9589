import type { KeyAnswer } from "../../api/keys.ts";
import { moment } from "../format.ts";

export const works = ({ state }: KeyAnswer): boolean => state === "active" || state === "rotated";

/** By which people know it: its name, or how it begins. */
export const keyName = ({ name, prefix }: Pick<KeyAnswer, "name" | "prefix">): string => name ?? `${prefix}…`;

export const keyNames = (keys: readonly KeyAnswer[]): ReadonlyMap<string, string> =>
  new Map(keys.map((key) => [key.id, keyName(key)]));

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
