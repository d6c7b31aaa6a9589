import { Confirm } from "./dialog.tsx";

interface RevokeDialogProps {
  readonly of: { readonly name: string | null; readonly prefix: string };
  readonly revoke: () => Promise<unknown>;
}

export const RevokeDialog = ({ of, revoke }: RevokeDialogProps) => (
  <Confirm title="Revoke the key" yes="Revoke now" no="Keep it" act={revoke}>
    <p>
      <strong>{of.name ?? of.prefix}</strong> stops working with its very next request, for good. Requests
      that are already streaming will finish.
    </p>
  </Confirm>
);
