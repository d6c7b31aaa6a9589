import { Confirm } from "./dialog.tsx";

interface RevokeDialogProps {
  readonly of: { readonly name: string | null; readonly prefix: string };
  readonly revoke: () => Promise<unknown>;
  readonly onClose: () => void;
  readonly onRevoked: () => void;
}

export function RevokeDialog({ of, revoke, onClose, onRevoked }: RevokeDialogProps) {
  const act = async () => {
    await revoke();
    onRevoked();
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
