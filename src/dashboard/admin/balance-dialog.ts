import type { BalanceAnswer } from "../../api/admin.ts";

/** Every dialog about a balance. */
export interface BalanceDialogProps {
  readonly of: BalanceAnswer;
  readonly onClose: () => void;
  readonly onDone: () => void;
}

/** A note is sent only where there is one. */
export const noted = (note: string): { note?: string } => (note.trim() === "" ? {} : { note: note.trim() });
