import type { ComponentChildren, ComponentProps } from "preact";
import { Button } from "./button.tsx";
import { Entrance } from "./page.tsx";

/** Where a link leads that somebody else may have sent: nothing changes before it is said what will. */
export const Confirmation = ({ title, lead, notice, button, onDone, children }: ConfirmationProps) => (
  <Entrance title={title} lead={lead}>
    {notice}
    <section class="card stack">
      {children}
      <div class="row">
        {button !== null && <Button variant="primary" {...button} />}
        <Button label="Not now" onClick={onDone} />
      </div>
    </section>
  </Entrance>
);

interface ConfirmationProps {
  readonly title: string;
  readonly lead: ComponentChildren;
  readonly notice?: ComponentChildren;
  /** Null while it is not known what the link would do. */
  readonly button: Pick<ComponentProps<typeof Button>, "label" | "action" | "onClick"> | null;
  readonly onDone: () => void;
  readonly children: ComponentChildren;
}
