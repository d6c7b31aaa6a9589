import type { ComponentChildren } from "preact";

/** What a table is headed by. The class `unseen` leaves a heading to those who have the page read to them. */
export type Column = string | readonly [label: string, className: string];

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
        const [label, className] = typeof column === "string" ? [column] : column;
        return (
          <th key={label} scope="col" class={className === "unseen" ? undefined : className}>
            {className === "unseen" ? <span class="unseen">{label}</span> : label}
          </th>
        );
      })}
    </tr>
  </thead>
);
