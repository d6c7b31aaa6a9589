import type { ComponentChildren } from "preact";

/** What a table is headed by. The class `unseen` leaves a heading to those who have the page read to them. */
export type Column = string | readonly [label: string, className: string, sort?: ColumnSort];

/** Of a column that the rows can be ordered by, the most first. */
export interface ColumnSort {
  readonly isBy: boolean;
  readonly onSort: () => void;
}

interface TableProps {
  readonly columns: readonly Column[];
  readonly children: ComponentChildren;
}

/** Rows in a card of their own. */
export const TableCard = (props: TableProps) => (
  <div class="card table-card">
    <Table {...props} />
  </div>
);

/** Rows under their headings; scrolls sideways where the screen is too narrow. */
export const Table = ({ columns, children }: TableProps) => (
  <div class="scroll">
    <table class="rows">
      <Headings of={columns} />
      <tbody>{children}</tbody>
    </table>
  </div>
);

export const Headings = ({ of }: { of: readonly Column[] }) => (
  <thead>
    <tr>
      {of.map((column) => {
        const [label, className, sort] = typeof column === "string" ? [column] : column;
        return (
          <th
            key={label}
            scope="col"
            class={className === "unseen" ? undefined : className}
            aria-sort={sort?.isBy === true ? "descending" : undefined}
          >
            {className === "unseen" && <span class="unseen">{label}</span>}
            {className !== "unseen" && (sort === undefined ? label : <SortButton label={label} by={sort} />)}
          </th>
        );
      })}
    </tr>
  </thead>
);

const SortButton = ({ label, by: { isBy, onSort } }: { label: string; by: ColumnSort }) => (
  <button type="button" class="sort" onClick={onSort}>
    {label}
    {isBy && <span aria-hidden="true">{"\u00a0↓"}</span>}
  </button>
);
