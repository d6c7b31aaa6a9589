import type { ComponentChildren } from "preact";
import type { ChangeAnswer } from "../../api/changes.ts";
import { moment, words } from "../format.ts";
import { type Column, Rows, usePages } from "./list.tsx";
import { Empty, Section } from "./page.tsx";

/** What was changed on one balance, by whom. */
export const BalanceChanges = ({ path, of = "" }: { path: string; of?: string }) => (
  <Section title="What was changed">
    <Rows
      of={usePages<ChangeAnswer>(path, { balance_id: of, limit: "20" })}
      empty={<Empty title="No changes yet" />}
      columns={changeColumns(false)}
    />
  </Section>
);

/** Who changed what, from what to what. Readers who see others' changes see whose balance, and from where, too. */
export const changeColumns = (isEverybodys: boolean): readonly Column<ChangeAnswer>[] => [
  ["When", "when", ({ at }) => moment(at)],
  [
    "By",
    "",
    ({ by: { kind, id, name }, network }) => (
      <>
        {kind}
        {id !== null && <Id of={name ?? id} />}
        {isEverybodys && network !== null && <Id of={network} />}
      </>
    ),
  ],
  [
    "What",
    "",
    ({ action, subject, balance_id: balance }) => (
      <>
        {actionText(action)}
        {(!isEverybodys || subject !== balance) && <Id of={subject} />}
        {isEverybodys && balance !== null && <Id of={<a href={`#/balances/${balance}`}>{balance}</a>} />}
      </>
    ),
  ],
  ["Fields", "", (change) => <Fields of={change} />],
];

const Id = ({ of }: { of: ComponentChildren }) => <div class="mono soft small">{of}</div>;

/** `key.changed` as words: key changed. */
export const actionText = (action: string): string => words(action.replace(".", " "));

const Fields = ({ of: { before, after } }: { of: ChangeAnswer }) => (
  <>
    {[...new Set([...Object.keys(before), ...Object.keys(after)])].map((name) => (
      <div key={name} class="small">
        <span class="soft">{words(name)}:</span>{" "}
        <span>
          {name in before && <Value of={before[name]} />}
          {name in before && " → "}
          {name in after ? <Value of={after[name]} /> : "–"}
        </span>
      </div>
    ))}
  </>
);

/** Ids stay in one line, longer values take as many as they need. */
function Value({ of }: { of: unknown }) {
  const text = of == null ? "–" : typeof of === "string" ? of : JSON.stringify(of);
  return <span class={/^\w{1,32}$/.test(text) ? "mono" : "mono changed"}>{text}</span>;
}
