import { expect, test } from "bun:test";
import { Networks } from "../../src/units/networks.ts";

test.each([
  ["10.0.0.0/8", "10.255.255.255", "11.0.0.0"],
  ["192.0.2.7", "192.0.2.7", "192.0.2.8"],
  ["192.0.2.7/32", "192.0.2.7", "192.0.2.6"],
  ["0.0.0.0/0", "203.0.113.9", "::1"],
  ["fd00::/8", "fd12::1", "fe00::1"],
  ["2001:db8::7", "2001:db8::7", "2001:db8::8"],
  ["2001:db8::7/128", "2001:db8::7", "2001:db8::6"],
])("%s has %s, and not %s", (row, inside, outside) => {
  const networks = new Networks();
  expect(networks.add(row)).toBeTrue();
  expect(networks.rows).toEqual([row]);
  expect([networks.has(inside), networks.has(outside), networks.has("nonsense")]).toEqual([
    true,
    false,
    false,
  ]);
});

test.each([
  "",
  "nonsense",
  "10.0.0.0/33",
  "10.0.0.0/",
  "10.0.0.0/-1",
  "10.0.0.0/8/8",
  "fd00::/129",
  "fe80::1%eth0",
  "10.0.0/8",
])("%p is no network", (row) => {
  const networks = new Networks();
  expect([networks.add(row), networks.rows]).toEqual([false, []]);
});
