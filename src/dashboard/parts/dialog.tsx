import type { ComponentChildren, ComponentProps } from "preact";
import { useContext, useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { useAction } from "../resource.ts";
import { Button, type ButtonProps, DialogEnds } from "./button.tsx";
import { ActionForm } from "./field.tsx";
import { Problem } from "./page.tsx";
import { Secret, type SecretProps } from "./secret.tsx";

/**
 * A modal dialog of the browser's own, which keeps the focus inside and gives it back when it is closed, not
 * when it is only taken away; Escape closes it.
 */
function Dialog({ title, onClose, closable = true, children }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const heading = useId();
  // Not a passive effect: its end would come when the dialog is gone.
  useLayoutEffect(() => {
    const shown = dialog.current!;
    shown.showModal();
    shown.querySelector<HTMLElement>("input, select, textarea")?.focus();
    return () => shown.close();
  }, []);
  return (
    <dialog
      ref={dialog}
      aria-labelledby={heading}
      onCancel={(event) => {
        event.preventDefault();
        if (closable) onClose();
      }}
    >
      <header>
        <h2 id={heading}>{title}</h2>
        {closable && (
          <button type="button" class="icon" aria-label="Close" onClick={onClose}>
            <svg viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">
              <path
                d="M3.5 3.5l9 9m0-9l-9 9"
                stroke="currentColor"
                stroke-width="1.6"
                stroke-linecap="round"
              />
            </svg>
          </button>
        )}
      </header>
      {children}
    </dialog>
  );
}

/** Asks before it acts; the paragraphs say what will be. */
export function Confirm<Made>({ title, yes, no, danger = true, act, once, children }: ConfirmProps<Made>) {
  const { acting, close, shown } = useDeed({ act, once });
  return (
    shown ?? (
      <Dialog title={title} onClose={close}>
        {children}
        <Problem error={acting.error} />
        <div class="row">
          <Button label={yes} variant={danger ? "primary danger" : "primary"} action={acting} />
          <Button label={no} onClick={close} />
        </div>
      </Dialog>
    )
  );
}

/** A button that ends something: it asks first, and says what will be. */
export const ConfirmButton = <Made,>({
  label,
  about,
  variant,
  onDone,
  ...dialog
}: ConfirmButtonProps<Made>) => (
  <Button
    label={label}
    about={about}
    variant={variant ?? "quiet danger"}
    onDone={onDone}
    dialog={<Confirm {...dialog} />}
  />
);

/** Asks for what an action needs, and acts. */
export function FormDialog<Made>({ title, act, once, danger, buttons, ...form }: FormDialogProps<Made>) {
  const { acting, close, shown } = useDeed({ act, once });
  return (
    shown ?? (
      <Dialog title={title} onClose={close}>
        <ActionForm
          {...form}
          action={acting}
          variant={danger ? "primary danger" : "primary"}
          buttons={[buttons, <Button key="cancel" label="Cancel" onClick={close} />]}
        />
      </Dialog>
    )
  );
}

/** The work of a dialog, which ends it, unless something came of it that is shown only once. */
function useDeed<Made>({ act, once }: Deed<Made>) {
  const { close, done } = useContext(DialogEnds);
  const [secret, setSecret] = useState<OneTimeSecret | null>(null);
  const acting = useAction(async () => {
    const made = await act();
    const toSave = once?.(made) ?? null;
    if (toSave === null) done();
    else setSecret(toSave);
  });
  return { acting, close, shown: secret && <SaveOnce of={secret} onDone={done} /> };
}

/** Closes only when its reader confirms that the secret is saved. */
function SaveOnce({ of: { title, note, onSaved, ...secret }, onDone }: SaveOnceProps) {
  const [saved, setSaved] = useState(false);
  const end = () => {
    onDone();
    onSaved?.();
  };
  return (
    <Dialog title={title} onClose={end} closable={saved}>
      {note !== undefined && <p>{note}</p>}
      <Secret {...secret} saved={saved} onSaved={setSaved} />
      <Button label="Done" variant="primary" disabled={!saved} onClick={end} />
    </Dialog>
  );
}

interface SaveOnceProps {
  readonly of: OneTimeSecret;
  readonly onDone: () => void;
}

/** What is shown only once. */
export interface OneTimeSecret extends Omit<SecretProps, "saved" | "onSaved"> {
  readonly title: string;
  readonly note?: string | undefined;
  readonly onSaved?: () => void;
}

interface Deed<Made> {
  readonly act: () => Promise<Made>;
  /** The secret in what was made. */
  readonly once?: ((made: Made) => OneTimeSecret | null) | undefined;
}

interface DialogProps {
  readonly title: string;
  readonly onClose: () => void;
  /** False while it shows something that is shown only once. */
  readonly closable?: boolean;
  readonly children: ComponentChildren;
}

interface ConfirmProps<Made> extends Deed<Made>, Pick<DialogProps, "title" | "children"> {
  readonly yes: string;
  readonly no: string;
  readonly danger?: boolean;
}

interface ConfirmButtonProps<Made>
  extends ConfirmProps<Made>,
    Pick<ButtonProps, "label" | "about" | "variant" | "onDone"> {}

interface FormDialogProps<Made>
  extends Deed<Made>,
    Pick<DialogProps, "title">,
    Pick<ComponentProps<typeof ActionForm>, "submit" | "error" | "class" | "buttons" | "children"> {
  readonly danger?: boolean;
}
