import type { OperatorAnswer, OperatorWithToken } from "../../api/operators.ts";
import { OPERATOR_ROLES, type OperatorRole } from "../../units/operator-roles.ts";
import { moment } from "../format.ts";
import { Button } from "../parts/button.tsx";
import { ConfirmButton, FormDialog } from "../parts/dialog.tsx";
import { Choice, endOfDay, lastDay, TextField, useField } from "../parts/field.tsx";
import { actionsOf, type Column, Rows } from "../parts/list.tsx";
import { Head } from "../parts/page.tsx";
import { useApi, useGet, useList } from "../resource.ts";

/** Who operates the gateway, with which role. */
export function Operators() {
  const operators = useList<OperatorAnswer>("admin/operators");
  const me = useGet<OperatorAnswer>("admin/me");
  const actions = actionsOf((one: OperatorAnswer) => (
    <Actions of={one} isMe={one.name === me.data?.name} onChanged={operators.reload} />
  ));
  return (
    <>
      <Head title="Operators" lead="Who may open these pages and send commands, each with their own token.">
        <Button
          label="Add operator"
          variant="primary"
          dialog={<OperatorDialog of={null} />}
          onDone={operators.reload}
        />
      </Head>
      <Rows of={operators} by={({ name }) => name} empty={null} columns={[...COLUMNS, actions]} />
    </>
  );
}

const COLUMNS: readonly Column<OperatorAnswer>[] = [
  [
    "Name",
    "",
    ({ name }) => (
      <a class="changed" href={`#/changes?by=${name}`}>
        {name}
      </a>
    ),
  ],
  ["Role", "", ({ role }) => role],
  ["Token from", "", ({ source }) => TOKEN_FROM[source]],
  ["Added", "", ({ created_at: at }) => (at === null ? "–" : moment(at))],
  ["Until", "", ({ expires_at: at }) => (at === null ? "no end" : moment(at))],
];

const TOKEN_FROM = {
  store: "this page, or a command",
  configuration: "the configuration",
  environment: "the environment, or the data folder",
} as const satisfies Record<OperatorAnswer["source"], string>;

/** Others are changed where they are kept; one's own token opens this page. */
function Actions({ of, isMe, onChanged }: ActionsProps) {
  const api = useApi();
  const { name, source } = of;
  if (isMe) return <span class="soft">you</span>;
  if (source !== "store") return null;
  return (
    <div class="row actions">
      <Button
        label="New token"
        about={`for ${name}`}
        variant="link"
        dialog={<OperatorDialog of={of} />}
        onDone={onChanged}
      />
      <ConfirmButton
        label="Remove"
        about={name}
        variant="link danger"
        title={`Remove ${name}`}
        yes="Remove now"
        no="Keep"
        act={() => api.delete(`admin/operators/${name}`)}
        onDone={onChanged}
      >
        <p>
          The token of {name} is refused from the next request on. What {name} did stays in the log of
          changes.
        </p>
      </ConfirmButton>
    </div>
  );
}

interface ActionsProps {
  readonly of: OperatorAnswer;
  readonly isMe: boolean;
  readonly onChanged: () => void;
}

/** Adds an operator, or gives one another token: null for a new one. */
function OperatorDialog({ of }: { of: OperatorAnswer | null }) {
  const api = useApi();
  const name = useField("");
  const role = useField<OperatorRole>("read");
  const until = useField(lastDay(of?.expires_at ?? null));
  const save = () => {
    const expires_at = endOfDay(until.value);
    return of === null
      ? api.post<OperatorWithToken>("admin/operators", {
          name: name.value.trim(),
          role: role.value,
          expires_at,
        })
      : api.post<OperatorWithToken>(`admin/operators/${of.name}/rotate`, { expires_at });
  };
  return (
    <FormDialog
      title={of === null ? "Add operator" : `New token for ${of.name}`}
      submit={of === null ? "Add" : "Replace the token"}
      danger={of !== null}
      act={save}
      once={(made) => ({
        title: `Save the token of ${made.name} now`,
        label: "Operator token",
        value: made.token,
        file: `${made.name}.txt`,
        explanation:
          "It opens these pages, and commands take it as GATEWAY_ADMIN_TOKEN. It is shown only this once.",
      })}
    >
      {of === null ? (
        <>
          <TextField label="Name" placeholder="eve" required {...name} />
          <Choice
            label="Role"
            options={OPERATOR_ROLES}
            nameOf={(one) => MAY[one as OperatorRole]}
            {...role}
          />
        </>
      ) : (
        <p>The present token of {of.name} is refused from the next request on.</p>
      )}
      <TextField
        label="Last day"
        type="date"
        hint="The token works until the end of this day (UTC). Empty: no end."
        {...until}
      />
    </FormDialog>
  );
}

const MAY = {
  read: "read: sees everything",
  operate: "operate: also keys and credit",
  admin: "admin: also configuration",
} as const satisfies Record<OperatorRole, string>;
