import type { RefObject } from "preact";
import { useState } from "preact/hooks";
import { Button } from "./button.tsx";

/** Puts a text, which `shown` holds, on the clipboard. */
export function CopyButton({ label, value, shown }: CopyButtonProps) {
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    // Browsers give pages the clipboard on https and on this machine only; elsewhere the text is marked, to
    // be copied by hand.
    if (navigator.clipboard === undefined) getSelection()?.selectAllChildren(shown.current!);
    else {
      await navigator.clipboard.writeText(value);
      setCopied(true);
    }
  };
  return (
    <>
      <Button label={copied ? "Copied" : "Copy"} about={label} onClick={copy} />
      <span class="unseen" role="status">
        {copied ? `${label} copied` : ""}
      </span>
    </>
  );
}

interface CopyButtonProps {
  readonly label: string;
  readonly value: string;
  readonly shown: RefObject<HTMLElement | null>;
}
