import type { ComponentChildren, ComponentProps } from "preact";
import { Button } from "./button.tsx";
import { Entrance } from "./frame.tsx";

/** Where a link leads that somebody else may have sent: nothing changes before it is said what will. */
export const AskFirst = ({ title, lead, notice, button, onDone, children }: AskFirstProps) => (
  <Entrance title={title} lead={lead}>
    {notice}
    <section class="card stack">
      {children}
      <div class="row">
        {button !== null && <Button look="primary" {...button} />}
        <Button label="Not now" onClick={onDone} />
      </div>
    </section>
  </Entrance>
);

interface AskFirstProps {
  readonly title: string;
  readonly lead: ComponentChildren;
  readonly notice?: ComponentChildren;
  /** Null while it is not known what the link would do. */
  readonly button: Pick<ComponentProps<typeof Button>, "label" | "action" | "onClick"> | null;
  readonly onDone: () => void;
  readonly children: ComponentChildren;
}
