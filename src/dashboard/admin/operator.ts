import { createContext } from "preact";
import { useContext } from "preact/hooks";
import type { Api } from "../api.ts";

/** The API with the admin token. */
const OperatorContext = createContext<Api | null>(null);
export const OperatorProvider = OperatorContext.Provider;

export function useOperator(): Api {
  const api = useContext(OperatorContext);
  if (api === null) throw new Error("no admin token was entered");
  return api;
}
