import { type ComponentChildren, createContext } from "preact";
import { useState } from "preact/hooks";
import type { Action } from "../resource.ts";

/** A button that does something on this page; one of an action cannot be pressed while that is under way. */
export function Button({ label, about, variant = "quiet", disabled, ...deed }: ButtonProps) {
  const { action, onClick, dialog, onDone } = deed;
  const [isOpen, setOpen] = useState(false);
  const close = () => setOpen(false);
  const done = () => {
    close();
    onDone?.();
  };
  return (
    <>
      <button
        type="button"
        class={variant}
        disabled={disabled ?? action?.busy}
        onClick={() => (onClick === undefined ? (action?.run() ?? setOpen(true)) : onClick())}
      >
        {label}
        {about !== undefined && <span class="unseen"> {about}</span>}
      </button>
      {isOpen && <DialogEnds.Provider value={{ close, done }}>{dialog}</DialogEnds.Provider>}
    </>
  );
}

export interface ButtonProps {
  readonly label: string;
  /** What it is about, for those who have the page read to them. */
  readonly about?: string | undefined;
  readonly variant?: ButtonVariant;
  readonly disabled?: boolean;
  /** What it does is one of these: a click's own, an action's, or that of the dialog which it opens. */
  readonly onClick?: () => unknown;
  readonly action?: Action;
  readonly dialog?: ComponentChildren;
  /** What the page does once the dialog has done its work. */
  readonly onDone?: (() => void) | undefined;
}

export type ButtonVariant = "primary" | "primary danger" | "quiet" | "quiet danger" | "link" | "link danger";

/** For the dialog that a button opens: `close` leaves it, `done` also reports that its work is done. */
export const DialogEnds = createContext({ close: () => {}, done: () => {} });
