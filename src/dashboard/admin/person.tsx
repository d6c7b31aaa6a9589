/** Whose something is: a person's address or wallet, where the account has one. */
export const Person = ({ of: { email, wallet, account_id } }: { of: Owner }) => (
  <span class="person">{email ?? wallet ?? account_id ?? "no account"}</span>
);

interface Owner {
  readonly email: string | null;
  readonly wallet: string | null;
  readonly account_id: string | null;
}
