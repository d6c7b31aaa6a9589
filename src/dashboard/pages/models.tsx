import { useState } from "preact/hooks";
import type { EntryAnswer } from "../../api/catalog.ts";
import { perMillion, rough } from "../../units/numbers.ts";
import { useOwner } from "../owner.ts";
import { Button } from "../parts/button.tsx";
import { TextField, useField } from "../parts/field.tsx";
import { Head } from "../parts/frame.tsx";
import { Empty, Loaded } from "../parts/notice.tsx";
import { type Column, TableCard } from "../parts/table.tsx";
import { useList } from "../resource.ts";

/** What can be called, and for how much. */
export function Models() {
  const { api } = useOwner();
  const models = useList<EntryAnswer>(api, "v1/catalog");
  const search = useField("");
  const [shown, setShown] = useState(ROWS);
  return (
    <>
      <Head
        title="Models"
        lead="Prices are in dollars per million tokens. Models marked “Open Tier” also have a free route."
      />
      <Loaded of={models}>
        {(data) => {
          const wanted = search.value.trim().toLowerCase();
          const found = data.filter(({ id, name }) => `${id} ${name}`.toLowerCase().includes(wanted));
          return (
            <>
              {data.length > 8 && (
                <TextField label="Search" type="search" placeholder="Name or id" {...search} />
              )}
              {found.length === 0 ? (
                <Empty title={data.length === 0 ? "No models are served" : "No model matches"}>
                  {data.length === 0
                    ? "The operator of this gateway has configured none yet."
                    : "Search for a part of its name or id."}
                </Empty>
              ) : (
                <>
                  <TableCard of={found.slice(0, shown)} by={({ id }) => id} columns={COLUMNS} />
                  {found.length > shown && (
                    <div>
                      <Button label={`Show more of ${found.length}`} onClick={() => setShown(shown + ROWS)} />
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

const COLUMNS: readonly Column<EntryAnswer>[] = [
  [
    "Model",
    "",
    (model) => (
      <>
        <strong>{model.name}</strong>
        <div class="mono soft small">{model.id}</div>
        <div class="narrow-only">{stateOf(model)}</div>
      </>
    ),
  ],
  ["Input", "end", ({ price }) => priceOf(price?.input)],
  ["Output", "end", ({ price }) => priceOf(price?.output)],
  ["Cached", "end wide-only", ({ price }) => priceOf(price?.cache_read)],
  ["Context", "end wide-only", ({ context_length }) => rough(context_length)],
  ["State", "end wide-only", stateOf],
];

function stateOf({ free, available }: EntryAnswer) {
  return (
    <>
      {free && <span class="tag good-tag">Open Tier</span>}{" "}
      {!available && <span class="tag bad-tag">unavailable</span>}
    </>
  );
}

const priceOf = (price: number | undefined): string => (price === undefined ? "—" : perMillion(price));
