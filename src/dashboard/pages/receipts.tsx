import type { List } from "../../api/answers.ts";
import type { EntryAnswer } from "../../api/catalog.ts";
import type { KeyAnswer } from "../../api/keys.ts";
import type { ReceiptState } from "../../api/receipts.ts";
import { words } from "../format.ts";
import { useOwner } from "../owner.ts";
import { Choice } from "../parts/field.tsx";
import { Head } from "../parts/frame.tsx";
import { keyName, keyNames } from "../parts/key-state.tsx";
import { ReceiptPages } from "../parts/receipt-pages.tsx";
import { useResource } from "../resource.ts";
import { useQuery } from "../route.ts";

/** What became of every request, newest first. */
export function Receipts() {
  const { api } = useOwner();
  const [filters, setFilters] = useQuery(FILTERS);
  const keys = useResource(() => api.get<List<KeyAnswer>>("v1/keys?limit=1000"), [api]);
  const models = useResource(() => api.get<List<EntryAnswer>>("v1/catalog"), [api]);
  const query = new URLSearchParams(Object.entries(filters).filter(([, value]) => value !== ""));
  const set = (name: keyof typeof filters) => (value: string) => setFilters({ ...filters, [name]: value });
  return (
    <>
      <Head
        title="Receipts"
        lead="One for each request: what it asked for, which host served it, and what it cost."
      />
      <div class="filters">
        <Choice
          label="Key"
          value={filters.key_id}
          onValue={set("key_id")}
          options={[
            ["", "All keys"],
            ...(keys.data?.data ?? []).map((key) => [key.id, keyName(key)] as const),
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
      <ReceiptPages
        key={query.toString()}
        keyNames={keyNames(keys.data?.data ?? [])}
        ask={(before, limit) => api.get(`v1/receipts?${pageOf(query, before, limit)}`)}
        empty={
          query.size > 0 ? (
            <p class="soft">Nothing fits these filters: choose others.</p>
          ) : (
            <p class="soft">
              Send a request, for instance from the <a href="#/playground">playground</a>.
            </p>
          )
        }
      />
    </>
  );
}

const FILTERS = ["key_id", "model", "state"] as const;
const STATES: ReceiptState[] = ["settled", "written_off", "failed", "cancelled", "recovered"];

const pageOf = (query: URLSearchParams, before: string | null, limit: number): URLSearchParams =>
  new URLSearchParams([
    ...query,
    ["limit", String(limit)],
    ...(before === null ? [] : [["before", before] as [string, string]]),
  ]);
