import { expect, test } from "bun:test";
import { withoutPassword } from "../../src/config/address.ts";

test.each([
  ["postgres://db.internal/gateway", "postgres://db.internal/gateway"],
  ["postgres://gateway:secret@db.internal/gateway", "postgres://***:***@db.internal/gateway"],
  ["postgres://token@db.internal/gateway", "postgres://***@db.internal/gateway"],
  ["postgres://db.internal/gateway?password=secret", "postgres://db.internal/gateway?***"],
  ["no address", "***"],
])("what may be a secret in %s is not shown", (address, shown) => {
  expect(withoutPassword(address)).toBe(shown);
});
