import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { MintedAnswer } from "../../api/keys.ts";
import { Dialog } from "./dialog.tsx";
import { Secret } from "./secret.tsx";

/** A new key's plaintext; the dialog closes once it is confirmed as saved. */
export function ShowKeyOnce({ minted, onDone, children }: ShowKeyOnceProps) {
  const [saved, setSaved] = useState(false);
  return (
    <Dialog title="Save the new key now" onClose={onDone} closable={saved}>
      {children}
      <Secret
        label="API key"
        value={minted.key}
        file={`${minted.id}.txt`}
        explanation="It is shown only this once."
        saved={saved}
        onSaved={setSaved}
      />
      <button type="button" class="primary" disabled={!saved} onClick={onDone}>
        Done
      </button>
    </Dialog>
  );
}

interface ShowKeyOnceProps {
  readonly minted: MintedAnswer;
  readonly onDone: () => void;
  readonly children?: ComponentChildren;
}
