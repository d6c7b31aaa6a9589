import { expect, test } from "bun:test";
import { readEmail } from "../../../src/customers/accounts/email.ts";

test.each([
  ["kim@example.com", "kim@example.com"],
  ["  Kim.Lee+bots@Mail.Example.COM ", "kim.lee+bots@mail.example.com"],
  ["o'neil_x@a-b.example", "o'neil_x@a-b.example"],
  ["kim@xn--exmple-cua.com", "kim@xn--exmple-cua.com"],
  ["kim@localhost", "kim@localhost"],
])("%p is the mailbox %p", (text, mailbox) => {
  expect(readEmail(text)).toBe(mailbox as never);
});

test.each([
  ["", "empty"],
  ["kim", "no domain"],
  ["@example.com", "no mailbox"],
  ["kim@", "no domain"],
  ["kim@-a.example", "a label that begins with a dash"],
  ["kim@a..example", "an empty label"],
  [".kim@example.com", "a dot at the start"],
  ["kim..lee@example.com", "two dots"],
  ['"kim lee"@example.com', "a quoted mailbox"],
  ["kim@[192.0.2.1]", "an address literal"],
  ["kim@192.0.2.1", "an address"],
  ["kim@example.com, lee@example.com", "two addresses"],
  ["Kim <kim@example.com>", "a name next to it"],
  ["kim@example.com\nBcc: lee@example.com", "a header smuggled in"],
  ["kim\u0000@example.com", "a control character"],
  ["kim@ex\u00e4mple.com", "a domain that is not in its ASCII form"],
  ["\u212aim@example.com", "the Kelvin sign, which lower-cases to a k"],
  [`${"a".repeat(65)}@example.com`, "a mailbox of 65 characters"],
  [`kim@${"a".repeat(64)}.example`, "a label of 64 characters"],
  [`${"a".repeat(64)}@${"b.".repeat(100)}example`, "more than 254 characters"],
])("%p is no address: %s", (text) => {
  expect(readEmail(text)).toBeNull();
});
