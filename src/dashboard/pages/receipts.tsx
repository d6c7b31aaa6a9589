import type { EntryAnswer } from "../../api/catalog.ts";
import type { KeyAnswer } from "../../api/keys.ts";
import type { ReceiptState } from "../../api/receipts.ts";
import { words } from "../format.ts";
import { useOwner } from "../owner.ts";
import { Choice } from "../parts/field.tsx";
import { Head } from "../parts/frame.tsx";
import { keyName, keyNames } from "../parts/key-state.tsx";
import { ReceiptPages } from "../parts/receipt-pages.tsx";
import { useList } from "../resource.ts";
import { useQuery } from "../route.ts";

/** What became of every request, newest first. */
export function Receipts() {
  const { api } = useOwner();
  const [filters, setFilters] = useQuery(FILTERS);
  const keys = useList<KeyAnswer>(api, "v1/keys?limit=1000");
  const models = useList<EntryAnswer>(api, "v1/catalog");
  const all = keys.data ?? [];
  const chosen = (name: keyof typeof filters) => ({
    value: filters[name],
    onValue: (value: string) => setFilters({ ...filters, [name]: value }),
  });
  return (
    <>
      <Head
        title="Receipts"
        lead="One for each request: what it asked for, which host served it, and what it cost."
      />
      <div class="filters">
        <Choice
          label="Key"
          options={[["", "All keys"], ...all.map((key) => [key.id, keyName(key)] as const)]}
          {...chosen("key_id")}
        />
        <Choice
          label="Model"
          options={[["", "All models"], ...(models.data ?? []).map(({ id }) => [id, id] as const)]}
          {...chosen("model")}
        />
        <Choice
          label="Outcome"
          options={[["", "All outcomes"], ...STATES.map((state) => [state, words(state)] as const)]}
          {...chosen("state")}
        />
      </div>
      <ReceiptPages
        key={Object.values(filters).join()}
        api={api}
        path="v1/receipts"
        filters={filters}
        keyNames={keyNames(all)}
        empty={
          Object.values(filters).some(Boolean) ? (
            "Nothing fits these filters: choose others."
          ) : (
            <>
              Send a request, for instance from the <a href="#/playground">playground</a>.
            </>
          )
        }
      />
    </>
  );
}

const FILTERS = ["key_id", "model", "state"] as const;
const STATES: ReceiptState[] = ["settled", "written_off", "failed", "cancelled", "recovered"];
