import { expect, test } from "bun:test";
import { errorObject } from "../../../src/units/errors/refusal.ts";
import { suspension } from "../../../src/units/errors/suspension-refusal.ts";

test.each([
  ["chargeback", "a chargeback"],
  ["sanctions", "a sanctions-screening hit"],
  ["acceptable_use", "an acceptable-use breach"],
] as const)("a suspended customer reads which of the three it was: %s", (reason, expected) => {
  const { message } = errorObject(suspension(reason, null), "http://g.test");
  expect(message).toStartWith(`This account is suspended after ${expected}, and its requests are refused. `);
});

test.each([
  ["mailto:ops@example.com", "Contact the operator of this gateway (ops@example.com). See "],
  [
    "https://example.com/help?from=api",
    "Contact the operator of this gateway (https://example.com/help?from=api). See ",
  ],
  [null, "Contact the operator of this gateway. See "],
])("a suspended customer reads the address %p", (contact, expected) => {
  const { message } = errorObject(suspension("chargeback", contact), "http://g.test");
  expect(message).toEndWith(`${expected}http://g.test/docs/errors#account_suspended`);
});
