import { useState } from "preact/hooks";
import type { EntryAnswer } from "../../api/catalog.ts";
import { ABILITIES, CONTEXTS, findModels, MODEL_FILTERS } from "../../api/find-models.ts";
import { perMillion, rough } from "../../units/numbers.ts";
import { count } from "../format.ts";
import { Button } from "../parts/button.tsx";
import { CopiedId } from "../parts/copy-button.tsx";
import { Choice, type FieldState, TextField } from "../parts/field.tsx";
import { FirstCall } from "../parts/first-call.tsx";
import { type Column, sortedBy, TableCard } from "../parts/list.tsx";
import { Crumb, Empty, Facts, Head, Loaded } from "../parts/page.tsx";
import { useList } from "../resource.ts";
import { useFilters } from "../route.ts";

/** What can be called, and for how much; the address has the filters. */
export function Models() {
  const models = useList<EntryAnswer>("v1/catalog");
  const { filters: query, field } = useFilters(MODEL_FILTERS);
  const [shown, setShown] = useState(ROWS);
  return (
    <>
      <Head
        title="Models"
        lead="Prices are in dollars per million tokens. Models marked “Open Tier” also have a free route."
      />
      <Loaded of={models}>
        {(data) => {
          const found = findModels(data, query);
          return (
            <>
              <div class="filters">
                <TextField label="Search" type="search" placeholder="Name or id" {...field("search")} />
                <Choice label="Context at least" options={CONTEXTS} {...field("context")} />
                <TextField label="Input at most" inputMode="decimal" placeholder="$" {...field("price")} />
                <Choice label="Can" options={ABILITIES} {...field("can")} />
              </div>
              {found.length === 0 ? (
                <Empty title={data.length === 0 ? "No models are served" : "No model matches"}>
                  {data.length === 0
                    ? "The operator of this gateway has configured none yet."
                    : "Search for a part of its name or id, or choose other filters."}
                </Empty>
              ) : (
                <TableCard of={found.slice(0, shown)} columns={columns(field("sort"))} />
              )}
              {found.length > shown && (
                <div>
                  <Button label={`Show more of ${found.length}`} onClick={() => setShown(shown + ROWS)} />
                </div>
              )}
            </>
          );
        }}
      </Loaded>
    </>
  );
}

const ROWS = 50;

const columns = (sort: FieldState): readonly Column<EntryAnswer>[] => [
  [
    "Model",
    "",
    (model) => (
      <>
        <a href={`#/models/${encodeURIComponent(model.id)}`}>{model.name}</a>
        <div class="mono soft small">{model.id}</div>
      </>
    ),
  ],
  ["Input", "end", ({ price }) => stepped(price, ({ input }) => input), sortedBy(sort, "input")],
  ["Output", "end", ({ price }) => stepped(price, ({ output }) => output), sortedBy(sort, "output")],
  ["Cached", "end", ({ price }) => priceOf(price?.cache_read)],
  ["Context", "end", ({ context_length }) => rough(context_length), sortedBy(sort, "context")],
  ["State", "end", stateOf],
];

/** Nothing for what can be used and costs something. */
function stateOf({ free, available }: EntryAnswer) {
  return free || !available ? (
    <>
      {free && <span class="tag good-tag">Open Tier</span>}{" "}
      {!available && <span class="tag bad-tag">unavailable</span>}
    </>
  ) : null;
}

/** The price, and those of longer prompts. */
function stepped(price: EntryAnswer["price"], line: (rates: { input: number; output: number }) => number) {
  if (price === null) return priceOf(undefined);
  return (
    <>
      {perMillion(line(price))}
      {price.above?.map((step) => (
        <div class="soft small" key={step.prompt}>
          above {rough(step.prompt)}: {perMillion(line(step))}
        </div>
      ))}
    </>
  );
}

const priceOf = (price: number | undefined): string => (price === undefined ? "—" : perMillion(price));

/** One model: its limits and prices, and a call of it that is ready to be copied. */
export function ModelPage({ id }: { id: string }) {
  const models = useList<EntryAnswer>("v1/catalog");
  return (
    <>
      <Crumb to="models" name="Models" />
      <Loaded of={models}>
        {(data) => {
          const model = data.find((one) => one.id === id);
          if (model === undefined)
            return <Empty title="No such model">This gateway does not serve it, or no longer does.</Empty>;
          const { price } = model;
          return (
            <>
              <Head title={model.name} />
              <section class="card">
                <Facts
                  of={[
                    ["Id", <CopiedId key="id" label="the id" value={model.id} />],
                    ["Context", `${count(model.context_length)} tokens`],
                    ["Longest answer", `${count(model.max_output_tokens)} tokens`],
                    ["Reads", model.input_modalities.join(", ")],
                    ["Calls tools", model.supported_parameters.includes("tools") ? "yes" : "not known to"],
                    ["Input, per million tokens", stepped(price, ({ input }) => input)],
                    ["Output, per million tokens", stepped(price, ({ output }) => output)],
                    ["Cached input, per million tokens", priceOf(price?.cache_read)],
                    ["State", model.available ? "available" : "unavailable"],
                  ]}
                />
              </section>
              <FirstCall model={model.id} />
              <p>
                <a href={`#/receipts?model=${encodeURIComponent(model.id)}`}>Receipts of this model</a>
              </p>
            </>
          );
        }}
      </Loaded>
    </>
  );
}
