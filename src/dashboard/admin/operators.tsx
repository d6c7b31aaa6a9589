import type { OperatorAnswer, OperatorWithToken } from "../../api/operators.ts";
import { OPERATOR_ROLES, type OperatorRole } from "../../units/operator-roles.ts";
import { moment } from "../format.ts";
import { Button } from "../parts/button.tsx";
import { ConfirmButton, type DialogEnds, FormDialog, SaveOnce, useDialog } from "../parts/dialog.tsx";
import { Choice, endOfDay, lastDay, TextField, useField } from "../parts/field.tsx";
import { Head } from "../parts/frame.tsx";
import { Listed } from "../parts/notice.tsx";
import { type Column, TableCard, Unseen } from "../parts/table.tsx";
import { useGet, useList } from "../resource.ts";
import { useOperator } from "./operator.ts";

/** Who operates the gateway, with which role. */
export function Operators() {
  const api = useOperator();
  const operators = useList<OperatorAnswer>(api, "admin/operators");
  const me = useGet<OperatorAnswer>(api, "admin/me");
  const { open, show, ends } = useDialog<OperatorAnswer | "new">(operators.reload);
  const { open: made, show: keep, ends: saved } = useDialog<OperatorWithToken>(() => {});
  const actions: Column<OperatorAnswer> = [
    <Unseen key="actions">Actions</Unseen>,
    "end",
    (one) => (
      <Actions
        of={one}
        isMe={one.name === me.data?.name}
        onRotate={() => show(one)}
        onRemoved={operators.reload}
      />
    ),
  ];
  return (
    <>
      <Head title="Operators" lead="Who may open these pages and send commands, each with their own token.">
        <Button label="Add operator" variant="primary" onClick={() => show("new")} />
      </Head>
      <Listed of={operators} empty={null}>
        {(rows) => <TableCard of={rows} by={({ name }) => name} columns={[...COLUMNS, actions]} />}
      </Listed>
      {open !== null && <OperatorDialog of={open === "new" ? null : open} onToken={keep} {...ends} />}
      {made !== null && (
        <SaveOnce
          title={`Save the token of ${made.name} now`}
          label="Operator token"
          value={made.token}
          file={`${made.name}.txt`}
          explanation="It opens these pages, and commands take it as GATEWAY_ADMIN_TOKEN. It is shown only this once."
          onDone={saved.onDone}
        />
      )}
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
function Actions({ of: { name, source }, isMe, onRotate, onRemoved }: ActionsProps) {
  const api = useOperator();
  if (isMe) return <span class="soft">you</span>;
  if (source !== "store") return null;
  return (
    <div class="row actions">
      <Button label="New token" about={`for ${name}`} variant="link" onClick={onRotate} />
      <ConfirmButton
        label="Remove"
        about={name}
        variant="link danger"
        title={`Remove ${name}`}
        yes="Remove now"
        no="Keep"
        act={() => api.delete(`admin/operators/${name}`)}
        onDone={onRemoved}
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
  readonly onRotate: () => void;
  readonly onRemoved: () => void;
}

/** Adds an operator, or gives one another token. */
function OperatorDialog({ of, onToken, onClose, onDone }: OperatorDialogProps) {
  const api = useOperator();
  const name = useField("");
  const role = useField<OperatorRole>("read");
  const until = useField(lastDay(of?.expires_at ?? null));
  const save = async () => {
    const expiry = { expires_at: endOfDay(until.value) };
    const made =
      of === null
        ? await api.post<OperatorWithToken>("admin/operators", {
            name: name.value.trim(),
            role: role.value,
            ...expiry,
          })
        : await api.post<OperatorWithToken>(`admin/operators/${of.name}/rotate`, expiry);
    onToken(made);
    onDone();
  };
  return (
    <FormDialog
      title={of === null ? "Add operator" : `New token for ${of.name}`}
      submit={of === null ? "Add" : "Replace the token"}
      danger={of !== null}
      act={save}
      onClose={onClose}
    >
      {of === null ? (
        <>
          <TextField label="Name" placeholder="eve" required {...name} />
          <Choice label="Role" options={OPERATOR_ROLES.map((one) => [one, MAY[one]] as const)} {...role} />
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

interface OperatorDialogProps extends DialogEnds {
  /** Null for a new one. */
  readonly of: OperatorAnswer | null;
  readonly onToken: (made: OperatorWithToken) => void;
}

const MAY = {
  read: "read: sees everything",
  operate: "operate: also keys and credit",
  admin: "admin: also configuration",
} as const satisfies Record<OperatorRole, string>;
