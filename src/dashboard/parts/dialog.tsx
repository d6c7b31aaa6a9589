import type { ComponentChildren, ComponentProps } from "preact";
import { useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { useAction } from "../resource.ts";
import { Button } from "./button.tsx";
import { ActionForm } from "./field.tsx";
import { Problem } from "./notice.tsx";
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

/** The dialog that is open over a page, if any; `onDone` is what the page does once it has done its work. */
export function useDialog<D>(onDone: () => void): OpenDialog<D> {
  const [open, show] = useState<D | null>(null);
  const onClose = () => show(null);
  const done = () => {
    onClose();
    onDone();
  };
  return { open, show, ends: { onClose, onDone: done } };
}

interface OpenDialog<D> {
  readonly open: D | null;
  show(dialog: D): void;
  /** For the dialog itself. */
  readonly ends: DialogEnds;
}

export interface DialogEnds {
  readonly onClose: () => void;
  readonly onDone: () => void;
}

/** Asks before it acts; the paragraphs say what will be. */
export function Confirm({ title, yes, no, danger = true, act, onClose, children }: ConfirmProps) {
  const acting = useAction(act);
  return (
    <Dialog title={title} onClose={onClose}>
      {children}
      <Problem error={acting.error} />
      <div class="row">
        <Button label={yes} variant={danger ? "primary danger" : "primary"} action={acting} />
        <Button label={no} onClick={onClose} />
      </div>
    </Dialog>
  );
}

/** A button that ends something: it asks first, and says what will be. */
export function ConfirmButton({
  label,
  about,
  variant = "quiet danger",
  act,
  onDone,
  ...dialog
}: ConfirmButtonProps) {
  const { open, show, ends } = useDialog<true>(onDone);
  const confirmed = async () => {
    await act();
    ends.onDone();
  };
  return (
    <>
      <Button
        label={label}
        {...(about === undefined ? {} : { about })}
        variant={variant}
        onClick={() => show(true)}
      />
      {open && <Confirm {...dialog} act={confirmed} onClose={ends.onClose} />}
    </>
  );
}

/** Asks for what an action needs, and acts. */
export function FormDialog({ title, act, danger = false, onClose, buttons, ...form }: FormDialogProps) {
  const action = useAction(act);
  const cancel = <Button label="Cancel" onClick={onClose} />;
  return (
    <Dialog title={title} onClose={onClose}>
      <ActionForm
        {...form}
        action={action}
        variant={danger ? "primary danger" : "primary"}
        buttons={[buttons, cancel]}
      />
    </Dialog>
  );
}

/** What is shown only once; it closes once that is confirmed as saved. */
export function SaveOnce({ title, onDone, children, ...secret }: SaveOnceProps) {
  const [saved, setSaved] = useState(false);
  return (
    <Dialog title={title} onClose={onDone} closable={saved}>
      {children}
      <Secret {...secret} saved={saved} onSaved={setSaved} />
      <Button label="Done" variant="primary" disabled={!saved} onClick={onDone} />
    </Dialog>
  );
}

interface DialogProps {
  readonly title: string;
  readonly onClose: () => void;
  /** False while it shows something that is shown only once. */
  readonly closable?: boolean;
  readonly children: ComponentChildren;
}

interface ConfirmProps extends DialogProps {
  readonly yes: string;
  readonly no: string;
  readonly danger?: boolean;
  readonly act: () => Promise<void>;
}

interface ConfirmButtonProps
  extends Omit<ConfirmProps, "onClose">,
    Pick<ComponentProps<typeof Button>, "label" | "about" | "variant"> {
  readonly onDone: () => void;
}

interface FormDialogProps
  extends DialogProps,
    Pick<ComponentProps<typeof ActionForm>, "submit" | "error" | "class" | "buttons"> {
  readonly danger?: boolean;
  readonly act: () => Promise<void>;
}

interface SaveOnceProps extends Omit<SecretProps, "saved" | "onSaved"> {
  readonly title: string;
  readonly onDone: () => void;
  readonly children?: ComponentChildren;
}
