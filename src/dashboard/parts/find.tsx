import type { ComponentChildren } from "preact";
import { useAction } from "../resource.ts";
import { go } from "../route.ts";
import { ActionForm, TextField, useField } from "./field.tsx";

/** One field, and the way to what is found by it: the address of its page, or null where there is none to go to. */
export function Find({ label, placeholder, pathOf, children }: FindProps) {
  const text = useField("");
  const find = useAction(async () => {
    const path = await pathOf(text.value.trim());
    if (path !== null) go(path);
  });
  return (
    <ActionForm class="find" action={find} submit="Open" variant="quiet" after={children}>
      <TextField label={label} placeholder={placeholder} required {...text} />
    </ActionForm>
  );
}

interface FindProps {
  readonly label: string;
  readonly placeholder: string;
  readonly pathOf: (text: string) => Promise<string | null>;
  readonly children?: ComponentChildren;
}
