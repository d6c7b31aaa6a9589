import { useState } from "preact/hooks";
import type { List } from "../../api/answers.ts";
import type { EntryAnswer } from "../../api/catalog.ts";
import { perMillion, rough } from "../../units/numbers.ts";
import { useOwner } from "../owner.ts";
import { TextField } from "../parts/field.tsx";
import { Head } from "../parts/frame.tsx";
import { Empty, Loaded } from "../parts/notice.tsx";
import { TableCard } from "../parts/table.tsx";
import { useResource } from "../resource.ts";

/** What can be called, and for how much. */
export function Models() {
  const { api } = useOwner();
  const models = useResource(() => api.get<List<EntryAnswer>>("v1/catalog"), [api]);
  const [search, setSearch] = useState("");
  const [shown, setShown] = useState(ROWS);
  return (
    <>
      <Head
        title="Models"
        lead="Prices are in dollars per million tokens. Models marked “Open Tier” also have a free route."
      />
      <Loaded of={models}>
        {({ data }) => {
          const wanted = search.trim().toLowerCase();
          const found = data.filter(({ id, name }) => `${id} ${name}`.toLowerCase().includes(wanted));
          return (
            <>
              {data.length > 8 && (
                <TextField
                  label="Search"
                  type="search"
                  value={search}
                  onValue={setSearch}
                  placeholder="Name or id"
                />
              )}
              {found.length === 0 ? (
                <Empty title={data.length === 0 ? "No models are served" : "No model matches"}>
                  <p class="soft">
                    {data.length === 0
                      ? "The operator of this gateway has configured none yet."
                      : "Search for a part of its name or id."}
                  </p>
                </Empty>
              ) : (
                <>
                  <ModelTable rows={found.slice(0, shown)} />
                  {found.length > shown && (
                    <div>
                      <button type="button" class="quiet" onClick={() => setShown(shown + ROWS)}>
                        Show more of {found.length}
                      </button>
                    </div>
                  )}
                </>
              )}
            </>
          );
        }}
      </Loaded>
    </>
  );
}

const ROWS = 100;

const stateOf = (free: boolean, available: boolean) => (
  <>
    {free && <span class="tag good-tag">Open Tier</span>}{" "}
    {!available && <span class="tag bad-tag">unavailable</span>}
  </>
);

const ModelTable = ({ rows }: { rows: readonly EntryAnswer[] }) => (
  <TableCard
    columns={[
      "Model",
      ["Input", "end"],
      ["Output", "end"],
      ["Cached", "end wide-only"],
      ["Context", "end wide-only"],
      ["State", "end wide-only"],
    ]}
  >
    {rows.map(({ id, name, price, context_length, free, available }) => (
      <tr key={id}>
        <td>
          <strong>{name}</strong>
          <div class="mono soft small">{id}</div>
          <div class="narrow-only">{stateOf(free, available)}</div>
        </td>
        <td class="end">{price === null ? "—" : perMillion(price.input)}</td>
        <td class="end">{price === null ? "—" : perMillion(price.output)}</td>
        <td class="end wide-only">{price === null ? "—" : perMillion(price.cache_read)}</td>
        <td class="end wide-only">{rough(context_length)}</td>
        <td class="end wide-only">{stateOf(free, available)}</td>
      </tr>
    ))}
  </TableCard>
);
