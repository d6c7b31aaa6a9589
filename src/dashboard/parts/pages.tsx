import { useEffect, useState } from "preact/hooks";
import type { List } from "../../api/answers.ts";
import type { Api } from "../api.ts";
import { type Action, type Resource, useAction, useResource } from "../resource.ts";
import { Button } from "./button.tsx";
import { Problem } from "./notice.tsx";

/** A long list, of which one page after the other is asked for. */
export interface Pages<T> extends Resource<readonly T[]> {
  readonly hasMore: boolean;
  readonly next: Action;
}

/** `path` may have a query; the list begins again whenever it changes. */
export function usePages<T extends { readonly id: string }>(api: Api, path: string): Pages<T> {
  const read = (before: string | null) =>
    api.get<Page<T>>(before === null ? path : `${path}${path.includes("?") ? "&" : "?"}before=${before}`);
  const first = useResource(() => pageWithRows(read, null), [api, path]);
  const [more, setMore] = useState<readonly Page<T>[]>([]);
  // Another list, or this one again.
  useEffect(() => setMore([]), [first.data]);
  const pages = first.data === null ? [] : [first.data, ...more];
  const rows = pages.flatMap(({ data }) => data);
  const next = useAction(async () => {
    const before = pages.at(-1)!.next_before ?? rows.at(-1)!.id;
    setMore([...more, await pageWithRows(read, before)]);
  });
  return {
    data: first.data === null ? null : rows,
    error: first.error,
    reload: first.reload,
    hasMore: pages.at(-1)?.has_more ?? false,
    next,
  };
}

/** What filters find may lie pages behind: some that are empty are passed over. */
async function pageWithRows<T>(
  read: (before: string | null) => Promise<Page<T>>,
  from: string | null,
): Promise<Page<T>> {
  let before = from;
  for (let pages = 1; ; pages++) {
    const page = await read(before);
    before = page.next_before ?? null;
    if (page.data.length > 0 || !page.has_more || before === null || pages === MAX_EMPTY_PAGES) return page;
  }
}

const MAX_EMPTY_PAGES = 20;

interface Page<T> extends List<T> {
  /** Where the next page begins, unless that is behind the last row. */
  readonly next_before?: string | null;
}

export const ShowOlder = ({ of: { hasMore, next }, label = "Show older" }: ShowOlderProps) => (
  <>
    <Problem error={next.error} />
    {hasMore && (
      <div>
        <Button label={label} action={next} />
      </div>
    )}
  </>
);

interface ShowOlderProps {
  readonly of: Pages<unknown>;
  readonly label?: string;
}
