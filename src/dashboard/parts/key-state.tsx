import { useEffect, useState } from "preact/hooks";
import type { KeyAnswer } from "../../api/keys.ts";
import type { List } from "../../api/schema.ts";
import type { Api } from "../api.ts";
import { moment, roughUsd } from "../format.ts";
import { useApi } from "../resource.ts";
import type { Column } from "./list.tsx";

export const works = ({ state }: KeyAnswer): boolean => state === "active" || state === "rotated";

/** By which people know it: its name, or how it begins. */
export const keyName = ({ name, prefix }: Pick<KeyAnswer, "name" | "prefix">): string => name ?? `${prefix}…`;

/** By id. `path` lists the keys; null where they are everybody's. */
export function useKeyNames(path: string | null, ids: readonly string[]): ReadonlyMap<string, string> {
  const api = useApi();
  const [names, setNames] = useState<ReadonlyMap<string, string>>(new Map());
  const unknown = [...new Set(ids)].filter((id) => !names.has(id)).slice(0, MAX_IDS);
  useEffect(() => {
    if (unknown.length === 0) return;
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
  path: string | null,
  ids: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const names = new Map(ids.map((id) => [id, `…${id.slice(-6)}`]));
  for (let from = 0; from < ids.length; from += MAX_IDS) {
    const some = ids.slice(from, from + MAX_IDS);
    const keys = path === null ? await everybodys(api, some) : await listed(api, path, some);
    for (const key of keys) names.set(key.id, keyName(key));
  }
  return names;
}

/** As many as the API takes. */
const MAX_IDS = 100;

const listed = async (api: Api, path: string, ids: readonly string[]): Promise<readonly KeyAnswer[]> =>
  (await api.get<List<KeyAnswer>>(`${path}?limit=${MAX_IDS}&ids=${ids.join()}`)).data;

/** One by one: no list has keys of several balances. */
const everybodys = async (api: Api, ids: readonly string[]): Promise<readonly KeyAnswer[]> =>
  (await Promise.all(ids.map((id) => api.get<KeyAnswer>(`admin/keys/${id}`).catch(() => [])))).flat();

export function KeyState({ of: { state, expires_at } }: { of: KeyAnswer }) {
  const until = expires_at === null ? null : moment(expires_at);
  if (state === "active")
    return <span class="tag good-tag">{until === null ? "active" : `active until ${until}`}</span>;
  if (state === "rotated")
    return <span class="tag warn-tag">{`replaced, works until ${until ?? "it is revoked"}`}</span>;
  return <span class="tag plain-tag">{state}</span>;
}

/** The way to a key's page, and how the key begins. */
export const KeyLink = ({ of: { id, name, prefix } }: KeyLinkProps) => (
  <>
    <a href={`#/keys/${id}`}>{name ?? "Unnamed key"}</a>
    <div class="mono soft small unbroken">{prefix}…</div>
  </>
);

interface KeyLinkProps {
  readonly of: Pick<KeyAnswer, "id" | "name"> & { readonly prefix: string | null };
}

/** What keys have used of their own caps. */
export const SPENT_COLUMNS: readonly Column<KeyAnswer>[] = [
  ["Today", "end", (key) => <Spent used={key.used_day_usd} of={key.daily_limit_usd} />],
  ["This month", "end", (key) => <Spent used={key.used_month_usd} of={key.monthly_limit_usd} />],
];

const Spent = ({ used, of }: { used: number; of: number | null }) => (
  <>
    {roughUsd(used)}
    {of !== null && <span class="soft"> of {roughUsd(of)}</span>}
  </>
);
