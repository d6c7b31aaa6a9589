import type { ConfigAnswer } from "../../api/admin.ts";
import type { KeyAnswer } from "../../api/keys.ts";
import type { ButtonProps } from "../parts/button.tsx";
import { type KeyChoices, KeyDialog, RevokeDialog } from "../parts/key-dialog.tsx";
import { KeyLink, KeyState, SPENT_COLUMNS, works } from "../parts/key-state.tsx";
import { actionsOf, type Column } from "../parts/list.tsx";
import { useApi, useGet } from "../resource.ts";
import { RoleButton } from "./role-button.tsx";

/** Keys of somebody's, with what the operator can do about them. */
export const keyColumns = (
  choices: OperatorsChoices,
  onChanged: () => void,
): readonly Column<KeyAnswer>[] => [
  [
    "Key",
    "",
    (key) => (
      <>
        <KeyLink of={key} />
        {key.price_list !== null && <div class="soft small">Price list {key.price_list}</div>}
      </>
    ),
  ],
  ["State", "", (key) => <KeyState of={key} />],
  ...SPENT_COLUMNS,
  actionsOf((key) => {
    const name = key.name ?? key.prefix;
    return (
      works(key) && (
        <div class="row actions">
          <RoleButton
            label="Limits"
            about={`of ${name}`}
            variant="link"
            dialog={<LimitsDialog of={key} choices={choices} />}
            onDone={onChanged}
          />
          <RevokeKey of={key} about={name} variant="link danger" onDone={onChanged} />
        </div>
      )
    );
  }),
];

export function LimitsDialog({ of, choices }: { of: KeyAnswer; choices: OperatorsChoices }) {
  const api = useApi();
  return <KeyDialog of={of} choices={choices} save={(spec) => api.patch(`admin/keys/${of.id}`, spec)} />;
}

export function RevokeKey({ of, ...button }: RevokeKeyProps) {
  const api = useApi();
  const revoke = () => api.post(`admin/keys/${of.id}/revoke`);
  return <RoleButton label="Revoke" dialog={<RevokeDialog of={of} revoke={revoke} />} {...button} />;
}

interface RevokeKeyProps extends Pick<ButtonProps, "about" | "variant" | "onDone"> {
  readonly of: Pick<KeyAnswer, "id" | "name" | "prefix">;
}

/** What an operator can pick for a key; empty until it is known. */
export function useKeyChoices(): OperatorsChoices {
  const { data } = useGet<ConfigAnswer>("admin/config");
  return {
    models: (data?.models ?? []).map(({ id }) => id),
    // Budgets are the owner's: those that the key draws from stay.
    budgets: [],
    priceLists: Object.keys((data?.price_lists ?? {}) as object),
    defaults: data?.defaults,
  };
}

interface OperatorsChoices extends Required<KeyChoices> {
  readonly defaults: ConfigAnswer["defaults"] | undefined;
}
