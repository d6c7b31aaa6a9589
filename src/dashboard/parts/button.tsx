import type { Action } from "../resource.ts";

/** A button that does something on this page; one of an action cannot be pressed while that is under way. */
export const Button = ({ label, about, variant = "quiet", action, disabled, onClick }: ButtonProps) => (
  <button
    type="button"
    class={variant}
    disabled={disabled ?? action?.busy}
    onClick={() => (onClick === undefined ? action?.run() : onClick())}
  >
    {label}
    {about !== undefined && <span class="unseen"> {about}</span>}
  </button>
);

export interface ButtonProps {
  readonly label: string;
  /** What it is about, for those who have the page read to them. */
  readonly about?: string;
  readonly variant?: ButtonVariant;
  /** What it does, unless there is an `onClick`. */
  readonly action?: Action;
  readonly disabled?: boolean;
  readonly onClick?: () => unknown;
}

export type ButtonVariant = "primary" | "primary danger" | "quiet" | "quiet danger" | "link" | "link danger";
