import type { ChangeAnswer } from "../../api/changes.ts";
import { CHANGE_ACTIONS } from "../../units/change-actions.ts";
import { actionText, ChangeTable } from "../parts/change-table.tsx";
import { ActionForm, Choice, TextField, useField } from "../parts/field.tsx";
import { Head } from "../parts/frame.tsx";
import { Empty, Listed } from "../parts/notice.tsx";
import { ShowOlder, usePages } from "../parts/pages.tsx";
import { useAction } from "../resource.ts";
import { useFilters } from "../route.ts";
import { useOperator } from "./operator.ts";

/** Who of operators, owners and keys has changed what. */
export function Changes() {
  const api = useOperator();
  const { filters, setFilters, field } = useFilters(FILTERS);
  const set = Object.entries(filters).filter(([, value]) => value !== "");
  const query = new URLSearchParams(set).toString();
  const changes = usePages<ChangeAnswer>(api, `admin/changes${query === "" ? "" : `?${query}`}`);
  const by = useField(filters.by);
  const subject = useField(filters.subject);
  const find = useAction(async () =>
    setFilters({ ...filters, by: by.value.trim(), subject: subject.value.trim() }),
  );
  return (
    <>
      <Head title="Changes" lead="What operators, owners and keys have changed." />
      <div class="filters">
        <Choice
          label="Action"
          {...field("action")}
          options={[["", "All actions"], ...CHANGE_ACTIONS.map((one) => [one, actionText(one)] as const)]}
        />
      </div>
      <section class="card">
        <ActionForm action={find} submit="Find">
          <TextField label="By" hint="An operator, or the id of a key, account or balance." {...by} />
          <TextField label="Changed" hint="The id or name of what was changed." {...subject} />
        </ActionForm>
      </section>
      <Listed of={changes} empty={<Empty title="No changes" />}>
        {(rows) => <ChangeTable of={rows} isEverybodys />}
      </Listed>
      <ShowOlder of={changes} />
    </>
  );
}

const FILTERS = ["action", "by", "subject"] as const;
