/**
 * The network that one subscriber may have to himself: the /24 of an IPv4 address, the /48 of an IPv6 one.
 * `blocks` are those that a request comes from, the narrowest first (http/address).
 */
export function wideNetwork(blocks: readonly string[]): string {
  const widest = blocks.at(-1) ?? "";
  const dotted = DOTTED.exec(widest);
  return dotted === null ? widest : `${dotted[1]}.0/24`;
}

const DOTTED = /^(\d+\.\d+\.\d+)\.\d+$/;
