import type { ComponentChildren } from "preact";
import type { ChangeAnswer } from "../../api/changes.ts";
import type { Api } from "../api.ts";
import { moment, words } from "../format.ts";
import { Section } from "./frame.tsx";
import { Empty, Listed } from "./notice.tsx";
import { ShowOlder, usePages } from "./pages.tsx";
import { TableCard } from "./table.tsx";

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

/** Who changed what, from what to what. Readers who see others' changes see whose balance, and from where, too. */
export const ChangeTable = ({ of, isEverybodys = false }: ChangeTableProps) => (
  <TableCard
    of={of}
    by={({ id }) => id}
    columns={[
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
    ]}
  />
);

interface ChangeTableProps {
  readonly of: readonly ChangeAnswer[];
  readonly isEverybodys?: boolean;
}

const Id = ({ of }: { of: ComponentChildren }) => <div class="mono soft small">{of}</div>;

/** `key.changed`, as people say it: key changed. */
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
