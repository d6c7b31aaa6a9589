import { useId, useRef } from "preact/hooks";
import { CopyButton } from "./copy-button.tsx";

/** A secret that is shown once: to be copied or kept as a file, and then to be confirmed as saved. */
export function Secret({ label, value, file, explanation, saved, onSaved }: SecretProps) {
  const id = useId();
  const shown = useRef<HTMLOutputElement>(null);
  return (
    <section class="secret" aria-labelledby={`${id}-label`}>
      <h2 id={`${id}-label`}>{label}</h2>
      <p class="soft small">{explanation}</p>
      <output ref={shown} class="secret-value mono" aria-label={label}>
        {value}
      </output>
      <div class="row">
        <CopyButton label={label} value={value} shown={shown} />
        <a class="button quiet" href={`data:text/plain,${encodeURIComponent(`${value}\n`)}`} download={file}>
          Save as file
        </a>
      </div>
      <label class="check">
        <input type="checkbox" checked={saved} onChange={(event) => onSaved(event.currentTarget.checked)} />
        <span>I saved the {label}</span>
      </label>
    </section>
  );
}

export interface SecretProps {
  readonly label: string;
  readonly value: string;
  /** Name of the file that it is saved as. */
  readonly file: string;
  readonly explanation: string;
  readonly saved: boolean;
  readonly onSaved: (saved: boolean) => void;
}
