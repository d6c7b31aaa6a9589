import { useEffect, useState } from "preact/hooks";
import type { List } from "../../api/answers.ts";
import type { KeyAnswer } from "../../api/keys.ts";
import type { Api } from "../api.ts";
import { moment } from "../format.ts";

export const works = ({ state }: KeyAnswer): boolean => state === "active" || state === "rotated";

/** By which people know it: its name, or how it begins. */
export const keyName = ({ name, prefix }: Pick<KeyAnswer, "name" | "prefix">): string => name ?? `${prefix}…`;

/** By id. `path` lists the keys; null where nobody may. */
export function useKeyNames(
  api: Api,
  path: string | null,
  ids: readonly string[],
): ReadonlyMap<string, string> {
  const [names, setNames] = useState<ReadonlyMap<string, string>>(new Map());
  const unknown = path === null ? [] : [...new Set(ids)].filter((id) => !names.has(id));
  useEffect(() => {
    if (path === null || unknown.length === 0) return;
    // Without names, the ids are shown.
    readKeyNames(api, path, unknown).then(
      (read) => setNames((known) => new Map([...known, ...read])),
      () => {},
    );
  }, [api, path, unknown.join()]);
  return names;
}

/** Reads the names of all of these keys; keys that no longer exist are called by their ids. */
export async function readKeyNames(
  api: Api,
  path: string,
  ids: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const names = new Map(ids.map((id) => [id, `…${id.slice(-6)}`]));
  for (let from = 0; from < ids.length; from += MAX_IDS) {
    const some = ids.slice(from, from + MAX_IDS).join();
    const { data } = await api.get<List<KeyAnswer>>(`${path}?limit=${MAX_IDS}&ids=${some}`);
    for (const key of data) names.set(key.id, keyName(key));
  }
  return names;
}

/** As many as the API takes. */
const MAX_IDS = 100;

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
