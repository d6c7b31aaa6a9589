import type { BalanceAnswer } from "../../api/admin.ts";
import type { DialogEnds } from "../parts/dialog.tsx";

/** Every dialog about a balance. */
export interface BalanceDialogProps extends DialogEnds {
  readonly of: BalanceAnswer;
}

/** A note is sent only where there is one. */
export const noted = (note: string): { note?: string } => (note.trim() === "" ? {} : { note: note.trim() });
