import { useRef } from "preact/hooks";
import { CopyButton } from "./copy-button.tsx";
import { Choice, useField } from "./field.tsx";

/** Code in the language that is picked, ready to be copied: `what` for, or as, that language. */
export function Snippet<W>({ label, what, by, languages, textOf }: SnippetProps<W>) {
  const picked = useField(Object.keys(languages)[0]!);
  const shown = useRef<HTMLElement>(null);
  const { name, write } = languages[picked.value]!;
  const text = textOf(write);
  return (
    <>
      <Choice
        label={label}
        options={Object.entries(languages).map(([id, language]) => [id, language.name])}
        {...picked}
      />
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable with the keyboard */}
      <section ref={shown} class="snippet mono" tabIndex={0} aria-label={`${by} ${name}`}>
        {text}
      </section>
      <div class="row">
        <CopyButton key={name} label={`${what} ${by.toLowerCase()} ${name}`} value={text} shown={shown} />
      </div>
    </>
  );
}

interface SnippetProps<W> {
  readonly label: string;
  readonly what: string;
  readonly by: "For" | "As";
  readonly languages: Readonly<Record<string, { readonly name: string; readonly write: W }>>;
  readonly textOf: (write: W) => string;
}
