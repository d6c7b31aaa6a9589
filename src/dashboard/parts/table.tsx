import type { ComponentChildren } from "preact";

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
export const sortedBy = (
  { value, onValue }: { readonly value: string; readonly onValue: (value: string) => void },
  column: string,
): ColumnSort => ({ isBy: value === column, onSort: () => onValue(value === column ? "" : column) });

interface TableProps<Row> {
  readonly of: readonly Row[];
  /** What tells a row from the others. */
  readonly by: (row: Row, index: number) => string;
  readonly columns: readonly Column<Row>[];
  /** Rows after those. */
  readonly children?: ComponentChildren;
}

/** Rows in a card of their own. */
export const TableCard = <Row,>(props: TableProps<Row>) => (
  <div class="card table-card">
    <Table {...props} />
  </div>
);

/** Rows under their headings; on a phone, each row is a card that has the headings next to its values (app.css). */
export const Table = <Row,>({ of, by, columns, children }: TableProps<Row>) => (
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
    </table>
  </div>
);

export const Cells = <Row,>({ of, columns }: { of: Row; columns: readonly Column<Row>[] }) => (
  <>
    {columns.map(([heading, className, cell], index) => (
      <td key={index} class={className} data-label={typeof heading === "string" ? heading : undefined}>
        {cell(of)}
      </td>
    ))}
  </>
);

export const Headings = <Row,>({ of }: { of: readonly Column<Row>[] }) => (
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

/** A heading for those who have the page read to them. */
export const Unseen = ({ children }: { children: ComponentChildren }) => (
  <span class="unseen">{children}</span>
);
