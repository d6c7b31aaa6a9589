/** Whose a balance is, where an account has an address or a wallet. */
interface Owner {
  readonly email: string | null;
  readonly wallet: string | null;
  readonly account_id: string | null;
}

const personOf = ({ email, wallet, account_id }: Owner): string | null => email ?? wallet ?? account_id;

export const Person = ({ of }: { of: Owner }) => <>{personOf(of) ?? "no account"}</>;

/** The way to a balance, by the person where there is one. */
export const BalanceLink = ({ id, of }: { id: string; of: Owner }) => {
  const person = personOf(of);
  return (
    <>
      <a href={`#/balances/${id}`} class={person === null ? "mono" : ""}>
        {person ?? id}
      </a>
      <div class={person === null ? "soft small" : "mono soft small"}>
        {person === null ? "no account" : id}
      </div>
    </>
  );
};

/** The way to a balance whose owner is shown elsewhere, or not known. */
export const BalanceId = ({ id }: { id: string }) => (
  <a class="mono" href={`#/balances/${id}`}>
    {id}
  </a>
);
