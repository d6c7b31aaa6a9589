import type { RefObject } from "preact";
import { useRef, useState } from "preact/hooks";
import { Button, type ButtonVariant } from "./button.tsx";

/** Puts a text, which `shown` holds, on the clipboard. */
export function CopyButton({ label, value, shown, variant = "quiet" }: CopyButtonProps) {
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
      <Button label={copied ? "Copied" : "Copy"} about={label} variant={variant} onClick={copy} />
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
  readonly variant?: ButtonVariant;
}

/** An id, which people paste into programs and mails. */
export function CopiedId({ label, value }: Pick<CopyButtonProps, "label" | "value">) {
  const shown = useRef<HTMLElement>(null);
  return (
    <span class="copied-id">
      <span class="mono" ref={shown}>
        {value}
      </span>{" "}
      <CopyButton label={label} value={value} shown={shown} variant="link" />
    </span>
  );
}
