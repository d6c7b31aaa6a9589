import type { ComponentChildren } from "preact";
import { useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { useAction } from "../resource.ts";
import { Problem } from "./notice.tsx";
import { Secret, type SecretProps } from "./secret.tsx";

/**
 * A modal dialog of the browser's own, which keeps the focus inside and gives it back when it is closed, not
 * when it is only taken away; Escape closes it.
 */
export function Dialog({ title, onClose, closable = true, children }: DialogProps) {
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
export function Confirm({ title, yes, no, danger = true, act, onClose, children }: ConfirmProps) {
  const acting = useAction(act);
  return (
    <Dialog title={title} onClose={onClose}>
      {children}
      <Problem error={acting.error} />
      <div class="row">
        <button
          type="button"
          class={danger ? "primary danger" : "primary"}
          disabled={acting.busy}
          onClick={() => acting.run()}
        >
          {yes}
        </button>
        <button type="button" class="quiet" onClick={onClose}>
          {no}
        </button>
      </div>
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
      <button type="button" class="primary" disabled={!saved} onClick={onDone}>
        Done
      </button>
    </Dialog>
  );
}

/** At a dialog's end: the way on, what else can be done, and the way back. */
export function DialogButtons({ submit, busy, danger = false, onClose, children }: DialogButtonsProps) {
  return (
    <div class="row">
      <button type="submit" class={danger ? "primary danger" : "primary"} disabled={busy}>
        {submit}
      </button>
      {children}
      <button type="button" class="quiet" onClick={onClose}>
        Cancel
      </button>
    </div>
  );
}

interface DialogProps {
  readonly title: string;
  readonly onClose: () => void;
  /** False while it shows something that is shown only once. */
  readonly closable?: boolean;
  readonly children: ComponentChildren;
}

interface ConfirmProps {
  readonly title: string;
  readonly yes: string;
  readonly no: string;
  readonly danger?: boolean;
  readonly act: () => Promise<void>;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
}

interface SaveOnceProps extends Omit<SecretProps, "saved" | "onSaved"> {
  readonly title: string;
  readonly onDone: () => void;
  readonly children?: ComponentChildren;
}

interface DialogButtonsProps {
  readonly submit: string;
  readonly busy: boolean;
  readonly danger?: boolean;
  readonly onClose: () => void;
  readonly children?: ComponentChildren;
}
