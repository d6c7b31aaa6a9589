import { describe, expect, test } from "bun:test";
import { AddressThrottle, blocksOf, throttlesOf, wideNetwork } from "../../../src/ledger/limits/address.ts";
import { Networks } from "../../../src/units/networks.ts";
import { ManualClock } from "../../fakes/clock.ts";
import { networks } from "../../http/test-gateway.ts";

/** nginx on this machine, behind a balancer in 10/8 and in fd00::/8. */
const PROXIES = networks("127.0.0.0/8", "::1", "10.0.0.0/8", "fd00::/8", "198.51.100.7");

describe("whose address counts", () => {
  test.each([
    ["a client that connects itself", "203.0.113.9", null, "203.0.113.9"],
    ["a client that claims another address", "203.0.113.9", "192.0.2.1", "203.0.113.9"],
    ["a proxy that saw it", "127.0.0.1", "192.0.2.1", "192.0.2.1"],
    ["a proxy on a socket of both kinds", "::ffff:127.0.0.1", "192.0.2.1", "192.0.2.1"],
    ["a client that wrote before the proxy did", "127.0.0.1", "6.6.6.6, 192.0.2.1", "192.0.2.1"],
    ["two proxies in a row", "127.0.0.1", "6.6.6.6, 192.0.2.1, 10.1.2.3", "192.0.2.1"],
    ["a single proxy by address", "198.51.100.7", "192.0.2.1", "192.0.2.1"],
    ["its neighbour, who is nobody", "198.51.100.8", "192.0.2.1", "198.51.100.8"],
    ["a proxy that forwards nothing", "127.0.0.1", null, "127.0.0.1"],
    ["a proxy that forwards nonsense", "10.1.2.3", "unknown", "10.1.2.3"],
    ["nonsense before a trusted address", "127.0.0.1", "192.0.2.1, nonsense, 10.1.2.3", "10.1.2.3"],
    ["a port next to the address", "127.0.0.1", "192.0.2.1:49152", "192.0.2.1"],
    ["only trusted addresses", "127.0.0.1", "10.9.9.9", "10.9.9.9"],
    ["more hops than anybody has", "127.0.0.1", `${"6.6.6.6,".repeat(2_000)}192.0.2.1`, "192.0.2.1"],
    ["a connection that is gone", null, "192.0.2.1", "unknown"],
    ["an IPv4 address in hexadecimal groups", "::ffff:cb00:7109", null, "203.0.113.9"],
    ["one in capitals", "::FFFF:203.0.113.9", null, "203.0.113.9"],
    ["one that is written out", "0:0:0:0:0:ffff:203.0.113.9", null, "203.0.113.9"],
    ["one with all its zeros", "0000:0000:0000:0000:0000:ffff:cb00:7109", null, "203.0.113.9"],
    ["one that a proxy saw", "127.0.0.1", "[::ffff:cb00:7109]:443", "203.0.113.9"],
    ["a proxy so written", "::ffff:7f00:1", "192.0.2.1", "192.0.2.1"],
  ])("%s", (_name, address, forwarded, expected) => {
    const headers = new Headers(forwarded === null ? {} : { "x-forwarded-for": forwarded });
    expect(blocksOf(address, headers, PROXIES)[0]).toBe(expected);
  });

  test("an IPv4 client counts by itself, and more loosely by its /24", () => {
    const blocks = (address: string) => blocksOf(address, new Headers(), PROXIES);
    expect(blocks("203.0.113.9")).toEqual(["203.0.113.9", "203.0.113.0/24"]);
    expect(blocks("::ffff:203.0.113.10")).toEqual(["203.0.113.10", "203.0.113.0/24"]);
    expect(blocksOf(null, new Headers(), PROXIES)).toEqual(["unknown"]);
  });

  test("an IPv6 client counts by its /64, and more loosely by its /48", () => {
    const blocks = (address: string) => blocksOf(address, new Headers(), PROXIES);
    expect(blocks("2001:db8:1:2:3:4:5:6")).toEqual(["2001:db8:1:2::/64", "2001:db8:1::/48"]);
    expect(blocks("2001:DB8:1:2::9")).toEqual(["2001:db8:1:2::/64", "2001:db8:1::/48"]);
    expect(blocks("2001:db8:1:3::9")).toEqual(["2001:db8:1:3::/64", "2001:db8:1::/48"]);
    expect(blocks("::fffe:203.0.113.9")).toEqual(["0:0:0:0::/64", "0:0:0::/48"]);
    expect(blocks("64:ff9b::203.0.113.9")).toEqual(["64:ff9b:0:0::/64", "64:ff9b:0::/48"]);
    const headers = new Headers({ "x-forwarded-for": "[2001:db8:1:2::9]:443" });
    expect(blocksOf("fd00::5", headers, PROXIES)[0]).toBe("2001:db8:1:2::/64");
  });
});

test("so many networks are remembered, and the idlest are forgotten first", () => {
  const throttle = new AddressThrottle(new ManualClock());
  expect(throttle.take("first", 1)).toBeNull();
  expect(throttle.take("second", 1)).toBeNull();
  for (let n = 0; n < 99_998; n++) throttle.take(`network ${n}`, 1);
  expect(throttle.take("first", 1)).toBe(3_600);
  // It is the idlest now.
  throttle.take("one more", 1);
  expect(throttle.take("second", 1)).toBeNull();
  expect(throttle.take("first", 1)).toBe(3_600);
});

describe("rows of trusted proxies", () => {
  test.each(["10.0.0.0/8", "192.0.2.7", "0.0.0.0/0", "fd00::/8", "::1", "2001:db8::/128"])(
    "%s is taken",
    (row) => {
      expect(new Networks().add(row)).toBe(true);
    },
  );

  test.each([
    "",
    "10.0.0.0/33",
    "fd00::/129",
    "10.0.0/8",
    "10.0.0.0/",
    "10.0.0.0/8/8",
    "10.0.0.0/-1",
    "fe80::1%eth0",
    "proxy.example",
  ])("%s is refused", (row) => {
    expect(new Networks().add(row)).toBe(false);
  });
});

test("what strangers may do so often an hour: each has a throttle of its own, which begins again with the hour", () => {
  const clock = new ManualClock();
  const throttles = throttlesOf(() => new AddressThrottle(clock));
  expect(Object.keys(throttles)).toEqual([
    "wrong_secrets",
    "wrong_admin_tokens",
    "wrong_signatures",
    "mails",
    "claims",
    "messages",
    "set_ups",
    "unpaid_keys",
    "webhook_tests",
  ]);
  const { mails, claims } = throttles;
  expect([mails.take("net", 1), claims.take("net", 1)]).toEqual([null, null]);
  clock.advance(3_599_999);
  expect(mails.take("net", 1)).toBe(1);
  clock.advance(1);
  expect(mails.take("net", 1)).toBeNull();
});

test("what comes to nothing is given back, and no more than was taken", () => {
  const throttle = new AddressThrottle(new ManualClock());
  expect([throttle.take("net", 1), throttle.take("net", 1)]).toEqual([null, 3_600]);
  for (let times = 0; times < 3; times++) throttle.giveBack("net");
  throttle.giveBack("another net");
  expect([throttle.take("net", 1), throttle.take("net", 1)]).toEqual([null, 3_600]);
});

test.each([
  [["192.0.2.7", "192.0.2.0/24"], "192.0.2.0/24"],
  [["2001:db8:1:2::/64", "2001:db8:1::/48"], "2001:db8:1::/48"],
  [["unknown"], "unknown"],
  [[], ""],
])("one subscriber may have all of %j: %s", (blocks, network) => expect(wideNetwork(blocks)).toBe(network));
