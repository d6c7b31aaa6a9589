import { Confirm, type DialogEnds } from "./dialog.tsx";

interface RevokeDialogProps extends DialogEnds {
  readonly of: { readonly name: string | null; readonly prefix: string };
  readonly revoke: () => Promise<unknown>;
}

export function RevokeDialog({ of, revoke, onClose, onDone }: RevokeDialogProps) {
  const act = async () => {
    await revoke();
    onDone();
  };
  return (
    <Confirm title="Revoke the key" yes="Revoke now" no="Keep it" act={act} onClose={onClose}>
      <p>
        <strong>{of.name ?? of.prefix}</strong> stops working with its very next request, for good. Requests
        that are already streaming will finish.
      </p>
    </Confirm>
  );
}
