import type { ReceiptAnswer, ReceiptState } from "../../api/receipts.ts";
import { ERRORS } from "../../units/errors/codes.ts";
import { words } from "../format.ts";
import { Note } from "./page.tsx";

/** Why a request did not end as others do, and what to do about it; nothing for one that succeeded. */
export function Why({ of: { state, error_code, attempts } }: { of: ReceiptAnswer }) {
  const failed = attempts.filter(({ outcome }) => outcome !== "opened" && outcome !== "answered");
  const row = error_code === null ? null : ERRORS[error_code];
  // The message itself went to the client: receipts do not keep it.
  const when = row?.when.replaceAll(/ The message [^.]*\./g, "") ?? ENDS[state];
  if (when === undefined) return null;
  return (
    <Note tone="warn" more={row !== null && <p class="small">{row.fix}</p>}>
      {failed.length > 0 && (
        <strong>
          {failed
            .map(({ host, outcome, detail }) => `${host}: ${(detail ?? words(outcome)).replace(/\.$/, "")}. `)
            .join("")}
        </strong>
      )}
      {when}
    </Note>
  );
}

/** What is no error and still not a whole answer. */
const ENDS: Partial<Record<ReceiptState, string>> = {
  cancelled: "The client left before the answer was complete. What had been delivered was charged.",
  written_off: "The host failed before it had produced 50 tokens, so nothing was charged.",
  recovered: "The gateway stopped while this request was running. What had been delivered was charged.",
};
