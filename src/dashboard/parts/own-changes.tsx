import type { ChangeAnswer } from "../../api/changes.ts";
import { useOwner } from "../owner.ts";
import { ChangeTable } from "./change-table.tsx";
import { Section } from "./frame.tsx";
import { Empty, Listed } from "./notice.tsx";
import { ShowOlder, usePages } from "./pages.tsx";

/** What was changed on the owner's balance, by whom. */
export function OwnChanges() {
  const { api } = useOwner();
  const changes = usePages<ChangeAnswer>(api, "v1/changes?limit=20");
  return (
    <Section title="What was changed">
      <Listed of={changes} empty={<Empty title="Nothing was changed yet" />}>
        {(rows) => <ChangeTable of={rows} />}
      </Listed>
      <ShowOlder of={changes} />
    </Section>
  );
}
