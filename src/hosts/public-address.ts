import { isIP } from "node:net";
import { Networks } from "../units/networks.ts";

/** Whether an address is on the internet: no private, local, shared, documentation, multicast or translated one. */
export function isPublicAddress(address: string): boolean {
  if (isIP(address) === 4) return !NOT_PUBLIC.has(address);
  return isIP(address) === 6 && !address.includes("%") && GLOBAL_V6.has(address) && !NOT_PUBLIC.has(address);
}

function networksOf(rows: readonly string[]): Networks {
  const networks = new Networks();
  for (const row of rows) networks.add(row);
  return networks;
}

/** All others, such as fc00::/7, fe80::/10, ::ffff:0:0/96 and 64:ff9b::/96, are not of the internet, or hide an IPv4 address. */
const GLOBAL_V6 = networksOf(["2000::/3"]);

/** https://www.iana.org/assignments/iana-ipv4-special-registry and its like for IPv6. */
const NOT_PUBLIC = networksOf([
  "0.0.0.0/8",
  "10.0.0.0/8",
  "100.64.0.0/10",
  "127.0.0.0/8",
  "169.254.0.0/16",
  "172.16.0.0/12",
  "192.0.0.0/24",
  "192.0.2.0/24",
  "192.88.99.0/24",
  "192.168.0.0/16",
  "198.18.0.0/15",
  "198.51.100.0/24",
  "203.0.113.0/24",
  "224.0.0.0/4",
  "240.0.0.0/4",
  // Azure's and Alibaba's metadata services.
  "168.63.129.16",
  "100.100.100.200",
  // Teredo, benchmarks, ORCHID, documentation, 6to4: some hide an IPv4 address.
  "2001::/23",
  "2001:db8::/32",
  "2002::/16",
  "3fff::/20",
]);
