import type { ChangeAnswer } from "../../api/changes.ts";
import type { Api } from "../api.ts";
import { moment, words } from "../format.ts";
import { Section } from "./frame.tsx";
import { Empty, Listed } from "./notice.tsx";
import { ShowOlder, usePages } from "./pages.tsx";
import { type Column, TableCard } from "./table.tsx";

/** What was changed on one balance, by whom. */
export function BalanceChanges({ api, path }: { api: Api; path: string }) {
  const changes = usePages<ChangeAnswer>(api, path);
  return (
    <Section title="What was changed">
      <Listed of={changes} empty={<Empty title="No changes yet" />}>
        {(rows) => <ChangeTable of={rows} />}
      </Listed>
      <ShowOlder of={changes} />
    </Section>
  );
}

/** Who changed what, from what to what. `more` are columns for readers who see others' changes. */
export const ChangeTable = ({
  of,
  more = [],
}: {
  of: readonly ChangeAnswer[];
  more?: readonly Column<ChangeAnswer>[];
}) => <TableCard of={of} by={({ id }) => id} columns={[...COLUMNS, ...more]} />;

const COLUMNS: readonly Column<ChangeAnswer>[] = [
  ["When", "", ({ at }) => moment(at)],
  ["By", "", ({ by }) => <Author of={by} />],
  [
    "What",
    "",
    ({ action, subject }) => (
      <>
        {actionText(action)}
        <div class="mono soft small changed">{subject}</div>
      </>
    ),
  ],
  ["Fields", "", (change) => <Fields of={change} />],
];

const Author = ({ of }: { of: ChangeAnswer["by"] }) => (
  <>
    {of.kind}
    {of.id !== null && <div class="mono soft small changed">{of.name ?? of.id}</div>}
  </>
);

/** `key.changed`, as people say it: key changed. */
export const actionText = (action: string): string => words(action.replace(".", " "));

const Fields = ({ of: { before, after } }: { of: ChangeAnswer }) => (
  <>
    {[...new Set([...Object.keys(before), ...Object.keys(after)])].map((name) => (
      <div key={name} class="small">
        <span class="soft">{words(name)}:</span>{" "}
        <span class="mono changed">
          {name in before && `${text(before[name])} → `}
          {name in after ? text(after[name]) : "–"}
        </span>
      </div>
    ))}
  </>
);

const text = (value: unknown): string =>
  value == null ? "–" : typeof value === "string" ? value : JSON.stringify(value);
