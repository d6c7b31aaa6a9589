import { createContext } from "preact";
import { useContext } from "preact/hooks";
import { allows, type OperatorRole } from "../../units/operator-roles.ts";
import { Button, type ButtonProps } from "../parts/button.tsx";

/** What the operator may do; the least, until that is known. */
const RoleContext = createContext<OperatorRole>("read");
export const RoleProvider = RoleContext.Provider;

/** For what not every operator may do: nothing, for one whose role is too low. */
export function RoleButton({ needs = "operate", ...props }: ButtonProps & { readonly needs?: OperatorRole }) {
  return allows(useContext(RoleContext), needs) ? <Button {...props} /> : null;
}
