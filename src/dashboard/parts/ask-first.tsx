import type { ComponentChildren } from "preact";
import { Entrance } from "./frame.tsx";

/** Where a link leads that somebody else may have sent: nothing changes before it is said what will. */
export const AskFirst = ({ title, lead, notice, button, onDone, children }: AskFirstProps) => (
  <Entrance title={title} lead={lead}>
    {notice}
    <section class="card stack">
      {children}
      <div class="row">
        {button !== null && (
          <button type="button" class="primary" disabled={button.busy} onClick={button.onClick}>
            {button.label}
          </button>
        )}
        <button type="button" class="quiet" onClick={onDone}>
          Not now
        </button>
      </div>
    </section>
  </Entrance>
);

interface AskFirstProps {
  readonly title: string;
  readonly lead: ComponentChildren;
  readonly notice?: ComponentChildren;
  /** Null while it is not known what the link would do. */
  readonly button: { readonly label: string; readonly busy?: boolean; readonly onClick: () => void } | null;
  readonly onDone: () => void;
  readonly children: ComponentChildren;
}
