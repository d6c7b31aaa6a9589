/**
 * Which hosts may serve a key's requests, whatever they name: both the policy and a request's own `provider` apply.
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
}

/** Whether requests of both keys may go to the same hosts. */
export const isSamePolicy = (one: KeyPolicy | null, other: KeyPolicy | null): boolean =>
  one === other || JSON.stringify(one) === JSON.stringify(other);
