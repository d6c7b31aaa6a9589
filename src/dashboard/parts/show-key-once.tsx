import type { ComponentChildren } from "preact";
import type { MintedAnswer } from "../../api/keys.ts";
import { SaveOnce } from "./dialog.tsx";

/** A new key's plaintext. */
export const ShowKeyOnce = ({ minted, onDone, children }: ShowKeyOnceProps) => (
  <SaveOnce
    title="Save the new key now"
    label="API key"
    value={minted.key}
    file={`${minted.id}.txt`}
    explanation="It is shown only this once."
    onDone={onDone}
  >
    {children}
  </SaveOnce>
);

interface ShowKeyOnceProps {
  readonly minted: MintedAnswer;
  readonly onDone: () => void;
  readonly children?: ComponentChildren;
}
