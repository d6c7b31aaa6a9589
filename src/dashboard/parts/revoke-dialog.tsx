import { useAction } from "../resource.ts";
import { Dialog } from "./dialog.tsx";
import { Problem } from "./notice.tsx";

interface RevokeDialogProps {
  readonly of: { readonly name: string | null; readonly prefix: string };
  readonly revoke: () => Promise<unknown>;
  readonly onClose: () => void;
  readonly onRevoked: () => void;
}

export function RevokeDialog({ of, revoke, onClose, onRevoked }: RevokeDialogProps) {
  const revoking = useAction(async () => {
    await revoke();
    onRevoked();
  });
  return (
    <Dialog title="Revoke the key" onClose={onClose}>
      <p>
        <strong>{of.name ?? of.prefix}</strong> stops working with its very next request, for good. Requests
        that are already streaming will finish.
      </p>
      <Problem error={revoking.error} />
      <div class="row">
        <button type="button" class="primary danger" disabled={revoking.busy} onClick={() => revoking.run()}>
          Revoke now
        </button>
        <button type="button" class="quiet" onClick={onClose}>
          Keep it
        </button>
      </div>
    </Dialog>
  );
}
