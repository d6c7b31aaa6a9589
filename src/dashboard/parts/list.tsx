import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { List } from "../../api/schema.ts";
import { type Query, withQuery } from "../api.ts";
import { type Action, type Resource, useAction, useApi, useResource } from "../resource.ts";
import { Button } from "./button.tsx";
import type { FieldState } from "./field.tsx";
import { Empty, Loaded, Problem } from "./page.tsx";

/** The rows of a list in a table, with the way to older ones; `empty` is in their place where there are none. */
export function Rows<Row>({ of, empty, older, children, columns, ...table }: RowsProps<Row>) {
  const pages = "next" in of ? of : null;
  const none = pages?.hasMore === true ? <NoneYet /> : empty;
  return (
    <>
      <Loaded of={of}>
        {(rows) =>
          rows.length === 0 ? (
            none
          ) : (
            <TableCard
              {...table}
              of={rows}
              columns={typeof columns === "function" ? columns(rows) : columns}
            />
          )
        }
      </Loaded>
      {children}
      {pages !== null && <ShowOlder of={pages} label={older} />}
    </>
  );
}

const NoneYet = () => (
  <Empty title="No match among those read so far">Choose other filters, or show older ones.</Empty>
);

interface RowsProps<Row> extends Omit<TableProps<Row>, "of" | "columns"> {
  readonly of: Resource<readonly Row[]> | Pages<Row>;
  readonly empty: ComponentChildren;
  readonly columns: readonly Column<Row>[] | ((rows: readonly Row[]) => readonly Column<Row>[]);
  /** Beneath the table. */
  readonly children?: ComponentChildren;
  /** What the button says that shows more. */
  readonly older?: string;
}

/** A column: its heading, the class of all its cells, what a row has in it, and whether rows can be ordered by it. */
export type Column<Row> = readonly [
  heading: ComponentChildren,
  className: string,
  cell: (row: Row) => ComponentChildren,
  sort?: ColumnSort,
];

/** For a column that the rows can be ordered by, the most first. */
interface ColumnSort {
  readonly isBy: boolean;
  readonly onSort: () => void;
}

/** By the filter that holds the column's name; chosen again, the rows are in their own order. */
export const sortedBy = ({ value, onValue }: FieldState, column: string): ColumnSort => ({
  isBy: value === column,
  onSort: () => onValue(value === column ? "" : column),
});

interface TableProps<Row> {
  readonly of: readonly Row[];
  /** The key of a row that has no id. */
  readonly by?: (row: Row, index: number) => string;
  readonly columns: readonly Column<Row>[];
  /** Further rows of the body, and those of the footer. */
  readonly children?: ComponentChildren;
  readonly foot?: ComponentChildren;
}

/** Rows in a card of their own. */
export const TableCard = <Row,>(props: TableProps<Row>) => (
  <div class="card table-card">
    <Table {...props} />
  </div>
);

/** Rows under their headings; on a phone, each row is a card that has the headings next to its values (app.css). */
export const Table = <Row,>({ of, by = idOf, columns, children, foot }: TableProps<Row>) => (
  <div class="scroll">
    <table class="rows">
      <Headings of={columns} />
      <tbody>
        {of.map((row, index) => (
          <tr key={by(row, index)}>
            <Cells of={row} columns={columns} />
          </tr>
        ))}
        {children}
      </tbody>
      {foot !== undefined && <tfoot>{foot}</tfoot>}
    </table>
  </div>
);

const idOf = (row: unknown): string => (row as { readonly id: string }).id;

export const Cells = <Row,>({ of, columns }: { of: Row; columns: readonly Column<Row>[] }) => (
  <>
    {columns.map(([heading, className, cell], index) => (
      <td key={index} class={className} data-label={typeof heading === "string" ? heading : undefined}>
        {cell(of)}
      </td>
    ))}
  </>
);

const Headings = <Row,>({ of }: { of: readonly Column<Row>[] }) => (
  <thead>
    <tr>
      {of.map(([heading, className, , sort], index) => (
        <th
          key={index}
          scope="col"
          // What is unseen at a table's right edge would widen it.
          class={typeof heading === "string" ? className : undefined}
          aria-sort={sort?.isBy === true ? "descending" : undefined}
        >
          {sort === undefined ? heading : <SortButton label={heading} by={sort} />}
        </th>
      ))}
    </tr>
  </thead>
);

const SortButton = ({ label, by: { isBy, onSort } }: { label: ComponentChildren; by: ColumnSort }) => (
  <button type="button" class="sort" onClick={onSort}>
    {label}
    {isBy && <span aria-hidden="true">{"\u00a0↓"}</span>}
  </button>
);

/** What can be done about a row; its heading is for those who have the page read to them. */
export const actionsOf = <Row,>(
  cell: (row: Row) => ComponentChildren,
  name = "Actions",
  className = "end",
): Column<Row> => [<span class="unseen">{name}</span>, className, cell];

/** A long list, of which one page after the other is asked for. */
interface Pages<T> extends Resource<readonly T[]> {
  readonly hasMore: boolean;
  readonly next: Action;
}

/** The list begins again whenever its path or query changes. */
export function usePages<T extends { readonly id: string }>(path: string, query: Query = {}): Pages<T> {
  const api = useApi();
  const read = (before: string | null) =>
    api.get<Page<T>>(withQuery(path, { ...query, before: before ?? "" }));
  const first = useResource(() => pageWithRows(read, null), [withQuery(path, query)]);
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

/** With a filter, pages may be empty and have a next one: skips some of them. */
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
  readonly label?: string | undefined;
}
