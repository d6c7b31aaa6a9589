import { createContext } from "preact";
import { useContext } from "preact/hooks";
import type { BudgetAnswer } from "../api/budgets.ts";
import type { EntryAnswer } from "../api/catalog.ts";
import type { KeyFields, MintedAnswer } from "../api/keys.ts";
import type { MeAnswer } from "../api/me.ts";
import type { KeyChoices } from "./parts/key-dialog.tsx";
import { useApi, useList } from "./resource.ts";

/** What every page of a signed-in owner works with. */
export interface OwnerContext {
  readonly by: "recovery" | "session";
  readonly me: MeAnswer;
  /** Asks for balance and account again: after whatever may have changed them. */
  refresh(): void;
  /** From here on by this recovery secret: the one that was used until now has ended. */
  useRecovery(secret: string): void;
  /** The credential has ended. */
  leave(): void;
  /** API keys whose plaintext passed through this tab, by id. In memory only. */
  readonly secrets: Map<string, string>;
}

const OwnerContext = createContext<OwnerContext | null>(null);
export const OwnerProvider = OwnerContext.Provider;

export function useOwner(): OwnerContext {
  const owner = useContext(OwnerContext);
  if (owner === null) throw new Error("no owner is signed in");
  return owner;
}

/** Makes a key of the balance, and remembers its plaintext. */
export function useMint(): (fields: KeyFields) => Promise<MintedAnswer> {
  const api = useApi();
  const { me, secrets } = useOwner();
  return async (fields) => {
    const minted = await api.on(me.balance_id).post<MintedAnswer>("v1/keys", fields);
    secrets.set(minted.id, minted.key);
    return minted;
  };
}

/** What an owner can pick for a key; empty until it is known. */
export function useKeyChoices(): KeyChoices {
  const catalog = useList<EntryAnswer>("v1/catalog");
  const budgets = useList<BudgetAnswer>("v1/budgets");
  return {
    models: (catalog.data ?? []).map(({ id }) => id),
    budgets: (budgets.data ?? []).map(({ name }) => name),
  };
}
