import { expect, test } from "bun:test";
import { wideNetwork } from "../../../src/ledger/limits/wide-network.ts";

test.each([
  [["192.0.2.7", "192.0.2.0/24"], "192.0.2.0/24"],
  [["2001:db8:1:2::/64", "2001:db8:1::/48"], "2001:db8:1::/48"],
  [["unknown"], "unknown"],
  [[], ""],
])("%j is in %s", (blocks, network) => expect(wideNetwork(blocks)).toBe(network));
