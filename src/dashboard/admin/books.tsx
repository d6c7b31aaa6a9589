import type { AuditAnswer } from "../../api/admin.ts";
import type { ExportAnswer } from "../../api/exports.ts";
import { atLeast, atMost, count, moment, usd } from "../format.ts";
import { Button } from "../parts/button.tsx";
import { type Column, TableCard } from "../parts/list.tsx";
import { Figure, Head, Listed, Loaded, Note } from "../parts/page.tsx";
import { useGet, useList } from "../resource.ts";

/** The ledger's invariant, recomputed from every entry when the page is opened. */
export function Books() {
  const audit = useGet<AuditAnswer>("admin/ledger/audit");
  return (
    <>
      <Head title="Books" lead="Credits − charges − open holds = available, recomputed from every entry.">
        <Button label="Audit again" onClick={audit.reload} />
      </Head>
      <Loaded of={audit}>
        {(data) => (
          <>
            <Note tone={data.ok ? "good" : "warn"}>
              {data.ok
                ? "The books are right, to the nano-dollar."
                : `The books are off by ${nano(data.drift_nano)}. Every sum that is off is listed below.`}
            </Note>
            <div class="grid-3">
              <Figure label="Credits" value={nano(data.credits_nano)} />
              <Figure label="Charges" value={nano(data.charges_nano)} />
              <Figure label="Open holds" value={nano(data.held_nano)} bound={atMost(data)} />
              <Figure label="Available" value={nano(data.available_nano)} bound={atLeast(data)} />
              <Figure label="Written off" value={nano(data.write_offs_nano)} hint="hosts that failed early" />
              <Figure label="Losses" value={nano(data.losses_nano)} hint="delivered beyond what was held" />
            </div>
            {data.drifts.length > 0 && (
              <TableCard of={data.drifts} by={({ account }) => account} columns={DRIFTS} />
            )}
          </>
        )}
      </Loaded>
      <Exports />
    </>
  );
}

/** How far the books are exported; nothing where they are not. */
function Exports() {
  const exports = useList<ExportAnswer>("admin/exports");
  return (
    <Listed of={exports} empty={null}>
      {(data) => {
        const problem = data.find((one) => one.problem !== null)?.problem;
        return (
          <>
            <h2>Export to {data[0]!.to}</h2>
            {problem === undefined ? null : <Note tone="warn">The last attempt failed: {problem}</Note>}
            <TableCard of={data} by={({ kind }) => kind} columns={EXPORTED} />
          </>
        );
      }}
    </Listed>
  );
}

const EXPORTED: readonly Column<ExportAnswer>[] = [
  ["Kind", "", ({ kind }) => kind],
  ["Exported through", "end", ({ exported_through }) => count(exported_through)],
  ["Waiting", "end", ({ waiting }) => count(waiting)],
  ["Complete until", "end", ({ caught_up_at }) => moment(caught_up_at, "second")],
];

const DRIFTS: readonly Column<AuditAnswer["drifts"][number]>[] = [
  ["Account", "mono", ({ account }) => account],
  ["Off by", "end", ({ drift_nano }) => nano(drift_nano)],
];

/** Rounded for the eye; the API has every digit. */
const nano = (amount: string): string => usd(Number(BigInt(amount)) / 1e9);
