import { useEffect, useState } from "preact/hooks";
import type { List } from "../../api/answers.ts";
import type { Api } from "../api.ts";
import { type Resource, useAction, useResource } from "../resource.ts";
import { Problem } from "./notice.tsx";

/** A long list, of which one page after the other is asked for. */
export interface Pages<T> extends Resource<readonly T[]> {
  readonly hasMore: boolean;
  readonly next: ReturnType<typeof useAction<[]>>;
}

/** Of a list whose next page begins before the last id of this one. `path` may have a query. */
export function usePages<T extends { readonly id: string }>(api: Api, path: string): Pages<T> {
  const first = useResource(() => api.get<List<T> & More>(path), [api, path]);
  const [more, setMore] = useState<readonly (List<T> & More)[]>([]);
  // Another list, or this one anew.
  useEffect(() => setMore([]), [first.data]);
  const pages = first.data === null ? [] : [first.data, ...more];
  const rows = pages.flatMap(({ data }) => data);
  const next = useAction(async () => {
    const before = `${path.includes("?") ? "&" : "?"}before=${rows.at(-1)!.id}`;
    setMore([...more, await api.get<List<T> & More>(path + before)]);
  });
  return {
    data: first.data === null ? null : rows,
    error: first.error,
    reload: first.reload,
    hasMore: pages.at(-1)?.has_more ?? false,
    next,
  };
}

interface More {
  readonly has_more: boolean;
}

export const ShowOlder = ({ of: { hasMore, next } }: { of: Pages<unknown> }) => (
  <>
    <Problem error={next.error} />
    {hasMore && (
      <div>
        <button type="button" class="quiet" disabled={next.busy} onClick={() => next.run()}>
          Show older
        </button>
      </div>
    )}
  </>
);
