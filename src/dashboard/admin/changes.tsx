import type { ChangeAnswer } from "../../api/changes.ts";
import { CHANGE_ACTIONS } from "../../units/change-actions.ts";
import { actionText, changeColumns } from "../parts/change-columns.tsx";
import { ActionForm, Choice, TextField, useField } from "../parts/field.tsx";
import { Rows, usePages } from "../parts/list.tsx";
import { Empty, Head } from "../parts/page.tsx";
import { useAction } from "../resource.ts";
import { useFilters } from "../route.ts";

/** Who of operators, owners and keys has changed what. */
export function Changes() {
  const { filters, change, field } = useFilters(["action", "by", "subject"]);
  const by = useField(filters.by);
  const subject = useField(filters.subject);
  const find = useAction(async () => change({ by: by.value.trim(), subject: subject.value.trim() }));
  return (
    <>
      <Head title="Changes" lead="What operators, owners and keys have changed." />
      <div class="filters">
        <Choice
          label="Action"
          all="All actions"
          options={CHANGE_ACTIONS}
          nameOf={actionText}
          {...field("action")}
        />
      </div>
      <section class="card">
        <ActionForm action={find} submit="Find">
          <TextField label="By" hint="An operator, or the id of a key, account or balance." {...by} />
          <TextField label="Changed" hint="The id or name of what was changed." {...subject} />
        </ActionForm>
      </section>
      <Rows
        of={usePages<ChangeAnswer>("admin/changes", filters)}
        empty={<Empty title="No changes" />}
        columns={changeColumns(true)}
      />
    </>
  );
}
