import { useEffect, useState } from "preact/hooks";
import type { List } from "../../api/answers.ts";
import type { Api } from "../api.ts";
import { type Action, type Resource, useAction, useGet } from "../resource.ts";
import { Button } from "./button.tsx";
import { Problem } from "./notice.tsx";

/** A long list, of which one page after the other is asked for. */
export interface Pages<T> extends Resource<readonly T[]> {
  readonly hasMore: boolean;
  readonly next: Action;
}

/** `path` may have a query. */
export function usePages<T extends { readonly id: string }>(api: Api, path: string): Pages<T> {
  const first = useGet<Page<T>>(api, path);
  const [more, setMore] = useState<readonly Page<T>[]>([]);
  // Another list, or this one anew.
  useEffect(() => setMore([]), [first.data]);
  const pages = first.data === null ? [] : [first.data, ...more];
  const rows = pages.flatMap(({ data }) => data);
  const next = useAction(async () => {
    const before = pages.at(-1)!.next_before ?? rows.at(-1)!.id;
    setMore([...more, await api.get<Page<T>>(`${path}${path.includes("?") ? "&" : "?"}before=${before}`)]);
  });
  return {
    data: first.data === null ? null : rows,
    error: first.error,
    reload: first.reload,
    hasMore: pages.at(-1)?.has_more ?? false,
    next,
  };
}

interface Page<T> extends List<T> {
  /** Where the next page begins, unless that is behind the last row. */
  readonly next_before?: string | null;
}

export const ShowOlder = ({ of: { hasMore, next } }: { of: Pages<unknown> }) => (
  <>
    <Problem error={next.error} />
    {hasMore && (
      <div>
        <Button label="Show older" action={next} />
      </div>
    )}
  </>
);
