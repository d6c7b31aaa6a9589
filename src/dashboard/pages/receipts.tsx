import { useState } from "preact/hooks";
import type { KeyAnswer, ReceiptAnswer, ReceiptState } from "../answers.ts";
import type { List } from "../api.ts";
import { words } from "../format.ts";
import { useOwner } from "../owner.ts";
import { Choice } from "../parts/field.tsx";
import { Head } from "../parts/frame.tsx";
import { Empty, Loaded, Problem } from "../parts/notice.tsx";
import { ReceiptTable } from "../parts/receipt-table.tsx";
import { useAction, useResource } from "../resource.ts";
import { useQuery } from "../route.ts";

/** What became of every request, newest first. */
export function Receipts() {
  const { api } = useOwner();
  const [filters, setFilters] = useQuery(FILTERS);
  const keys = useResource(() => api.get<List<KeyAnswer>>("v1/keys?limit=1000"), [api]);
  const models = useResource(() => api.get<List<{ id: string }>>("v1/catalog"), [api]);
  const set = (name: keyof typeof filters) => (value: string) => setFilters({ ...filters, [name]: value });
  return (
    <>
      <Head title="Receipts" lead="One for each request: what was asked, who served it, and what it cost." />
      <div class="filters">
        <Choice
          label="Key"
          value={filters.key_id}
          onValue={set("key_id")}
          options={[
            ["", "All keys"],
            ...(keys.data?.data ?? []).map(({ id, name, prefix }) => [id, name ?? `${prefix}…`] as const),
          ]}
        />
        <Choice
          label="Model"
          value={filters.model}
          onValue={set("model")}
          options={[["", "All models"], ...(models.data?.data ?? []).map(({ id }) => [id, id] as const)]}
        />
        <Choice
          label="Outcome"
          value={filters.state}
          onValue={set("state")}
          options={[["", "All outcomes"], ...STATES.map((state) => [state, words(state)] as const)]}
        />
      </div>
      <Pages key={JSON.stringify(filters)} filters={filters} />
    </>
  );
}

const FILTERS = ["key_id", "model", "state"] as const;
const STATES: ReceiptState[] = ["settled", "written_off", "failed", "cancelled", "recovered"];

interface ReceiptPageAnswer extends List<ReceiptAnswer> {
  /** Where the next page begins; null at the end. */
  readonly next_before: string | null;
}

function Pages({ filters }: { filters: Readonly<Record<(typeof FILTERS)[number], string>> }) {
  const { api } = useOwner();
  const ask = (before: string | null) => {
    const query = new URLSearchParams(Object.entries(filters).filter(([, value]) => value !== ""));
    if (before !== null) query.set("before", before);
    return api.get<ReceiptPageAnswer>(`v1/receipts?${query}`);
  };
  const first = useResource(() => ask(null), [api]);
  const [more, setMore] = useState<readonly ReceiptPageAnswer[]>([]);
  const next = useAction(async (before: string) => setMore([...more, await ask(before)]));
  return (
    <Loaded of={first}>
      {(page) => {
        const pages = [page, ...more];
        const rows = pages.flatMap(({ data }) => data);
        const { next_before } = pages.at(-1)!;
        return (
          <>
            {rows.length === 0 && next_before === null ? (
              <Empty title="No receipts here yet">
                <p class="soft">
                  Send a request, for instance from the <a href="#/playground">playground</a>.
                </p>
              </Empty>
            ) : (
              <ReceiptTable rows={rows} />
            )}
            <Problem error={next.error} />
            {next_before !== null && (
              <button type="button" class="quiet" disabled={next.busy} onClick={() => next.run(next_before)}>
                Show older
              </button>
            )}
          </>
        );
      }}
    </Loaded>
  );
}
