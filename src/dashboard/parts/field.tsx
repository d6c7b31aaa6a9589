import type { ComponentChildren, InputHTMLAttributes } from "preact";
import { useEffect, useId, useState } from "preact/hooks";
import { DAY_MS } from "../../units/clock.ts";
import type { Action } from "../resource.ts";
import type { ButtonVariant } from "./button.tsx";
import { Problem } from "./page.tsx";

interface FormProps {
  readonly onSubmit: () => unknown;
  readonly class?: string | undefined;
  readonly children: ComponentChildren;
}

/** A form that the page handles itself; the browser sends nothing. */
export const Form = ({ onSubmit, children, ...rest }: FormProps) => (
  <form
    {...rest}
    onSubmit={(event) => {
      event.preventDefault();
      onSubmit();
    }}
  >
    {children}
  </form>
);

/** A form for an action: its fields, what went wrong, the button that sends it, and others next to that. */
export const ActionForm = ({
  action,
  submit,
  variant = "primary",
  error,
  buttons,
  after,
  ...form
}: ActionFormProps) => (
  <Form class={form.class} onSubmit={action.run}>
    {form.children}
    <Problem error={action.error ?? error} />
    <div class="row">
      <button type="submit" class={variant} disabled={action.busy}>
        {submit}
      </button>
      {buttons}
    </div>
    {after}
  </Form>
);

interface ActionFormProps extends Omit<FormProps, "onSubmit"> {
  readonly action: Action;
  readonly submit: string;
  readonly variant?: ButtonVariant;
  /** The error of another action, which one of the other buttons starts. */
  readonly error?: unknown;
  readonly buttons?: ComponentChildren;
  /** Beneath the buttons. */
  readonly after?: ComponentChildren;
}

/** What is typed into a field, or chosen there: it is spread into the field. */
export interface FieldState {
  readonly value: string;
  readonly onValue: (value: string) => void;
}

export function useField<V extends string = string>(begins: V) {
  const [value, setValue] = useState<V>(begins);
  return { value, onValue: (typed: string) => setValue(typed as V) };
}

/** A labelled text input. */
export const TextField = ({ label, value, onValue, hint, ...rest }: TextFieldProps) => (
  <Labelled label={label} hint={hint}>
    {(names) => (
      <input
        {...names}
        value={value}
        onInput={(event) => onValue(event.currentTarget.value)}
        autocomplete="off"
        spellcheck={false}
        {...(rest as InputHTMLAttributes<HTMLInputElement>)}
      />
    )}
  </Labelled>
);

interface TextFieldProps extends FieldState {
  readonly label: string;
  readonly hint?: ComponentChildren;
  readonly type?: "email" | "password" | "search" | "date";
  readonly inputMode?: "decimal" | "numeric";
  readonly placeholder?: string;
  readonly required?: boolean;
}

/** An input between its label and its hint. */
function Labelled({ label, hint, children }: LabelledProps) {
  const id = useId();
  const hintId = hint === undefined ? undefined : `${id}-hint`;
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {children({ id, "aria-describedby": hintId })}
      {hint !== undefined && (
        <p id={hintId} class="hint">
          {hint}
        </p>
      )}
    </div>
  );
}

interface LabelledProps extends Pick<TextFieldProps, "label" | "hint"> {
  readonly children: (names: { id: string; "aria-describedby"?: string | undefined }) => ComponentChildren;
}

/** A labelled choice. */
export const Choice = ({ label, value, onValue, options, all, nameOf }: ChoiceProps) => (
  <Labelled label={label}>
    {(names) => (
      <select {...names} value={value} onChange={(event) => onValue(event.currentTarget.value)}>
        {all !== undefined && <option value="">{all}</option>}
        {namedOptions(options, nameOf).map(([option, name]) => (
          <option key={option} value={option}>
            {name}
          </option>
        ))}
      </select>
    )}
  </Labelled>
);

interface ChoiceProps extends FieldState {
  readonly label: string;
  /** Values, with what is shown for each where that is not `nameOf` it, or the value itself. */
  readonly options: readonly Option[];
  readonly nameOf?: (option: string) => string;
  /** The option for an empty value; without it, a value must be chosen. */
  readonly all?: string;
}

type Option = string | readonly [value: string, name: string];

const namedOptions = (options: readonly Option[], nameOf = (option: string) => option) =>
  options.map((option) => (typeof option === "string" ? ([option, nameOf(option)] as const) : option));

/** A choice among so many that they are searched: what is typed counts once it names one of them. */
export function SearchChoice({ label, value, onValue, options, all, onTyped }: SearchChoiceProps) {
  const [typed, setTyped] = useState<string | null>(null);
  const named = namedOptions(options);
  const find = (text: string) => named.find(([option, name]) => name === text || option === text);
  const type = (text: string) => {
    const found = find(text);
    setTyped(found === undefined && text !== "" ? text : null);
    if (found !== undefined || text === "") onValue(found?.[0] ?? "");
    else onTyped?.(text);
  };
  // Options may come after what was typed.
  useEffect(() => {
    if (typed !== null && find(typed) !== undefined) type(typed);
  }, [options.length, typed]);
  return (
    <Labelled label={label}>
      {({ id }) => (
        <>
          <input
            id={id}
            type="search"
            list={`${id}-list`}
            value={typed ?? named.find(([option]) => option === value)?.[1] ?? value}
            placeholder={all}
            autocomplete="off"
            spellcheck={false}
            onInput={(event) => type(event.currentTarget.value)}
          />
          <datalist id={`${id}-list`}>
            {named.map(([option, name]) => (
              <option key={option} value={name} />
            ))}
          </datalist>
        </>
      )}
    </Labelled>
  );
}

interface SearchChoiceProps extends Omit<ChoiceProps, "nameOf"> {
  /** Called with what names none of the options yet. */
  readonly onTyped?: (text: string) => void;
}

/** A filter's number as it is typed; empty while it is none. */
export const decimal = (typed: string): string => (/^\d+(\.\d+)?$/.test(typed.trim()) ? typed.trim() : "");

/** A limit as it is typed: null where it is empty. Throws what is wrong with one that is no number. */
export function readLimit(text: string, problem = NO_AMOUNT): number | null {
  const trimmed = text.trim().replace(/^\$/, "").replaceAll(",", "");
  if (trimmed === "") return null;
  const number = Number(trimmed);
  if (!Number.isFinite(number) || number < 0) throw new Error(problem);
  return number;
}

/** What has to be given: an amount that is paid, credited or taken back. */
export function readAmount(text: string, problem = NO_AMOUNT): number {
  const amount = readLimit(text, problem);
  if (amount === null) throw new Error(problem);
  return amount;
}

const NO_AMOUNT = "The amount must be a number of dollars.";

export const limitText = (limit: number | null): string => (limit === null ? "" : String(limit));

/** As date fields have it; keys and tokens end between two days, unless a program set another moment. */
export const lastDay = (expiresAt: string | null): string =>
  expiresAt === null ? "" : new Date(Date.parse(expiresAt) - 1).toISOString().slice(0, 10);

export const endOfDay = (day: string): string | null =>
  day === "" ? null : new Date(Date.parse(day) + DAY_MS).toISOString();

/** A note is sent only where there is one. */
export const noted = (note: string): { note?: string } => (note.trim() === "" ? {} : { note: note.trim() });
