import type { ComponentChildren, InputHTMLAttributes } from "preact";
import { useId } from "preact/hooks";

interface FormProps {
  readonly onSubmit: () => unknown;
  readonly class?: string;
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
  readonly type?: "text" | "email" | "password" | "search" | "date";
  readonly inputMode?: "decimal" | "numeric" | "text" | "email";
  readonly placeholder?: string;
  readonly required?: boolean;
  readonly autoFocus?: boolean;
  readonly pattern?: string;
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
