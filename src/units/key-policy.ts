/**
 * Which hosts may serve a key's requests, whatever they name: both the policy and a request's own `provider` apply. And
 * what of their bodies they are counted under.
 * As the API has it, and as it is stored.
 */
export interface KeyPolicy {
  /** Only hosts whose region, as the operator names it, is one of these. */
  readonly region?: readonly string[];
  /** Only hosts that are known to retain nothing. */
  readonly zdr?: boolean;
  readonly hosts?: {
    /** Ids of the only hosts. */
    readonly only?: readonly string[];
    readonly ignore?: readonly string[];
  };
  /** Only routes that cost no more, in USD per million tokens. */
  readonly max_price?: { readonly prompt?: number; readonly completion?: number };
  /** The members of `metadata` are tags, on chat and responses; and the client's end user is the tag `user`. */
  readonly tags_from?: "metadata";
  /** The client's end user is the tag `user`, as it is named or hashed with the balance's salt. */
  readonly user_tag?: "plain" | "hashed";
}

/** Whether requests of both keys may go to the same hosts. */
export const isSamePolicy = (one: KeyPolicy | null, other: KeyPolicy | null): boolean =>
  one === other || JSON.stringify(one) === JSON.stringify(other);
