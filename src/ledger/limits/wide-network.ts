/**
 * The network that one subscriber may have to himself: the /24 of an IPv4 address, the /48 of an IPv6 one.
 * `blocks` are those that a request comes from, the narrowest first (ledger/limits/address).
 */
export const wideNetwork = (blocks: readonly string[]): string => blocks.at(-1) ?? "";
