import type { ComponentChildren, InputHTMLAttributes } from "preact";
import { useEffect, useId, useState } from "preact/hooks";
import { DAY_MS } from "../../units/clock.ts";
import type { Action } from "../resource.ts";
import type { ButtonVariant } from "./button.tsx";
import { Problem } from "./notice.tsx";

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
export function useField<V extends string = string>(begins: V) {
  const [value, setValue] = useState<V>(begins);
  return { value, onValue: (typed: string) => setValue(typed as V) };
}

/** A labelled text input. */
export function TextField({ label, value, onValue, hint, ...rest }: TextFieldProps) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <input
        id={id}
        value={value}
        onInput={(event) => onValue(event.currentTarget.value)}
        aria-describedby={hint === undefined ? undefined : `${id}-hint`}
        autocomplete="off"
        spellcheck={false}
        {...(rest as InputHTMLAttributes<HTMLInputElement>)}
      />
      {hint !== undefined && (
        <p id={`${id}-hint`} class="hint">
          {hint}
        </p>
      )}
    </div>
  );
}

interface TextFieldProps {
  readonly label: string;
  readonly value: string;
  readonly onValue: (value: string) => void;
  readonly hint?: ComponentChildren;
  readonly type?: "email" | "password" | "search" | "date";
  readonly inputMode?: "decimal" | "numeric";
  readonly placeholder?: string;
  readonly required?: boolean;
}

/** A labelled choice. */
export function Choice({ label, value, onValue, options }: ChoiceProps) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <select id={id} value={value} onChange={(event) => onValue(event.currentTarget.value)}>
        {options.map(([option, shown]) => (
          <option key={option} value={option}>
            {shown}
          </option>
        ))}
      </select>
    </div>
  );
}

interface ChoiceProps {
  readonly label: string;
  readonly value: string;
  readonly onValue: (value: string) => void;
  /** Value and what is shown for it. */
  readonly options: readonly (readonly [string, string])[];
}

/** A choice among so many that they are searched: what is typed counts once it names one of them. */
export function SearchChoice({ label, value, onValue, options, placeholder, onTyped }: SearchChoiceProps) {
  const id = useId();
  const [typed, setTyped] = useState<string | null>(null);
  const shown = options.find(([option]) => option === value)?.[1] ?? value;
  const type = (text: string) => {
    const found = options.find(([option, name]) => name === text || option === text);
    setTyped(found === undefined && text !== "" ? text : null);
    if (found !== undefined || text === "") onValue(found?.[0] ?? "");
    else onTyped?.(text);
  };
  // Options may come after what was typed.
  useEffect(() => {
    if (typed !== null && options.some(([option, name]) => name === typed || option === typed)) type(typed);
  }, [options.length, typed]);
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <input
        id={id}
        type="search"
        list={`${id}-list`}
        value={typed ?? shown}
        placeholder={placeholder}
        autocomplete="off"
        spellcheck={false}
        onInput={(event) => type(event.currentTarget.value)}
      />
      <datalist id={`${id}-list`}>
        {options.map(([option, name]) => (
          <option key={option} value={name} />
        ))}
      </datalist>
    </div>
  );
}

interface SearchChoiceProps extends ChoiceProps {
  /** What an empty field means. */
  readonly placeholder: string;
  /** Called with what names none of the options yet. */
  readonly onTyped?: (text: string) => void;
}

/** A limit as it is typed: empty means none. Undefined when it is no number. */
export function readLimit(text: string): number | null | undefined {
  const trimmed = text.trim().replace(/^\$/, "").replaceAll(",", "");
  if (trimmed === "") return null;
  const number = Number(trimmed);
  return Number.isFinite(number) && number >= 0 ? number : undefined;
}

/** What is paid, credited or taken back. */
export function readAmount(text: string): number {
  const amount = readLimit(text);
  if (amount === null || amount === undefined) throw new Error("The amount must be a number of dollars.");
  return amount;
}

export const limitText = (limit: number | null): string => (limit === null ? "" : String(limit));

/** As date fields have it; keys and tokens end between two days, unless a program set another moment. */
export const lastDay = (expiresAt: string | null): string =>
  expiresAt === null ? "" : new Date(Date.parse(expiresAt) - 1).toISOString().slice(0, 10);

export const endOfDay = (day: string): string | null =>
  day === "" ? null : new Date(Date.parse(day) + DAY_MS).toISOString();
