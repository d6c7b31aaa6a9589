import { useState } from "preact/hooks";
import type { DefaultLimits, KeyAnswer, KeyFields, MintedAnswer } from "../../api/keys.ts";
import { Confirm, FormDialog, type OneTimeSecret } from "./dialog.tsx";
import { Choice, endOfDay, lastDay, limitText, readLimit, TextField, useField } from "./field.tsx";

/**
 * Makes a key, or changes one. For a new key empty limits are left to the gateway's defaults; for one that exists
 * they mean no limit.
 */
export function KeyDialog<Made>({ of, defaults, choices, save, once }: KeyDialogProps<Made>) {
  const { name, limits, until, priceList, budgets, models, read } = useKeyFields(of);
  const priceLists = [
    ...new Set([...(choices.priceLists ?? []), ...(of?.price_list ? [of.price_list] : [])]),
  ];
  return (
    <FormDialog
      title={of === null ? "New key" : "Change limits"}
      submit={of === null ? "Create key" : "Save"}
      act={() => save(read())}
      once={once}
    >
      <TextField label="Name" placeholder="my-agent" {...name} />
      <div class="columns">
        {LIMITS.map(({ field, label, mode }, index) => (
          <TextField
            key={field}
            label={label}
            inputMode={mode}
            placeholder={of === null ? defaultText(defaults?.[field]) : NO_LIMIT}
            {...limits[index]!}
          />
        ))}
        {of?.state !== "rotated" && (
          <TextField
            label="Last day"
            type="date"
            hint="The key works until the end of this day (UTC). Empty: no end."
            {...until}
          />
        )}
      </div>
      <p class="hint">
        {of === null
          ? "Leave empty for the default that the field shows. Everything can be changed later."
          : "Leave empty for no limit. The balance's credit always applies."}
      </p>
      {choices.priceLists !== undefined && priceLists.length > 0 && (
        <Choice label="Price list" all="that of its balance" options={priceLists} {...priceList} />
      )}
      {choices.budgets.length > 0 && (
        <Picks legend="Budgets it draws from" options={choices.budgets} {...budgets} />
      )}
      {choices.models.length > 0 && (
        <Picks
          legend="Allowed models (none selected: all)"
          options={[...new Set([...choices.models, ...models.picked])]}
          {...models}
        />
      )}
    </FormDialog>
  );
}

/** What is entered of a key: null for a new one. */
function useKeyFields(of: KeyAnswer | null) {
  const name = useField(of?.name ?? "");
  const [limits, setLimits] = useState(() => LIMITS.map(({ field }) => limitText(of?.[field] ?? null)));
  const began = lastDay(of?.expires_at ?? null);
  const until = useField(began);
  const priceList = useField(of?.price_list ?? "");
  const models = usePicks(of?.allowed_models ?? []);
  const budgets = usePicks(listOf(of?.budget ?? null));
  // What is undefined is not sent: it stays as it is, or gets the default.
  const none = of === null ? undefined : null;
  const limitOf = (label: string, text: string) =>
    readLimit(text, `${label} must be a number of 0 or more, or empty.`) ?? none;
  const read = () => ({
    name: name.value.trim() || null,
    ...Object.fromEntries(LIMITS.map(({ field, label }, at) => [field, limitOf(label, limits[at]!)])),
    expires_at: until.value === began ? undefined : endOfDay(until.value),
    allowed_models: models.picked.length > 0 ? models.picked : none,
    budget: budgets.picked.length > 0 ? budgets.picked : none,
    price_list: priceList.value === (of?.price_list ?? "") ? undefined : priceList.value || null,
  });
  return {
    ...{ name, until, priceList, models, budgets },
    limits: limits.map((value, at) => ({
      value,
      onValue: (typed: string) => setLimits(limits.with(at, typed)),
    })),
    read: read as () => KeyFields,
  };
}

export interface KeyChoices {
  readonly models: readonly string[];
  readonly budgets: readonly string[];
  /** Only operators choose one. */
  readonly priceLists?: readonly string[];
}

interface KeyDialogProps<Made> {
  /** Null for a new one. */
  readonly of: KeyAnswer | null;
  /** What a new one gets where nothing is entered; undefined until that is known. */
  readonly defaults?: DefaultLimits | undefined;
  /** Ids of models, and names of the balance's budgets; what is not offered stays as it is. */
  readonly choices: KeyChoices;
  readonly save: (spec: KeyFields) => Promise<Made>;
  /** The secret of a new one. */
  readonly once?: (made: Made) => OneTimeSecret;
}

/** A new key's plaintext. */
export const keyOnce = (minted: MintedAnswer, note?: string): OneTimeSecret => ({
  title: "Save the new key now",
  label: "API key",
  value: minted.key,
  file: `${minted.id}.txt`,
  explanation: "It is shown only this once.",
  note,
});

const LIMITS = [
  { field: "daily_limit_usd", label: "Dollars per day", mode: "decimal" },
  { field: "monthly_limit_usd", label: "Dollars per month", mode: "decimal" },
  { field: "rpm_limit", label: "Requests per minute", mode: "numeric" },
  { field: "tpm_limit", label: "Tokens per minute", mode: "numeric" },
] as const;

const NO_LIMIT = "no limit";

const defaultText = (limit: number | null | undefined): string =>
  limit === undefined ? "default" : `default: ${limit === null ? NO_LIMIT : limit.toLocaleString("en")}`;

/** Any number of some; of many, those that are picked and those that a search finds. */
function Picks({ legend, options, picked, onPicked }: PicksProps) {
  const search = useField("");
  const toggle = (option: string) =>
    onPicked(picked.includes(option) ? picked.filter((one) => one !== option) : [...picked, option]);
  const isLong = options.length > MAX_SHOWN;
  const searched = search.value.trim().toLowerCase();
  const found = options.filter((option) => option.toLowerCase().includes(searched));
  const shown = isLong ? [...new Set([...picked, ...found.slice(0, MAX_SHOWN)])] : options;
  return (
    <fieldset class="picks">
      <legend>{legend}</legend>
      {isLong && <TextField label="Search" type="search" placeholder="Part of an id" {...search} />}
      <div class="picks-list">
        {shown.map((option) => (
          <label key={option} class="check">
            <input type="checkbox" checked={picked.includes(option)} onChange={() => toggle(option)} />
            <span>{option}</span>
          </label>
        ))}
      </div>
      {isLong && found.length > MAX_SHOWN && (
        <p class="hint">{found.length - MAX_SHOWN} more: search for a part of the id.</p>
      )}
    </fieldset>
  );
}

const MAX_SHOWN = 12;

function usePicks(begins: readonly string[]) {
  const [picked, onPicked] = useState(begins);
  return { picked, onPicked };
}

interface PicksProps extends ReturnType<typeof usePicks> {
  readonly legend: string;
  readonly options: readonly string[];
}

export const listOf = (budget: KeyAnswer["budget"]): readonly string[] =>
  budget === null ? [] : typeof budget === "string" ? [budget] : budget;

interface RevokeDialogProps {
  readonly of: { readonly name: string | null; readonly prefix: string };
  readonly revoke: () => Promise<unknown>;
}

export const RevokeDialog = ({ of, revoke }: RevokeDialogProps) => (
  <Confirm title="Revoke the key" yes="Revoke now" no="Keep it" act={revoke}>
    <p>
      <strong>{of.name ?? of.prefix}</strong> stops working with its very next request, for good. Requests
      that are already streaming will finish.
    </p>
  </Confirm>
);
