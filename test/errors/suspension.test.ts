import { expect, test } from "bun:test";
import { errorObject } from "../../src/errors/refusal.ts";
import { suspension } from "../../src/errors/suspension.ts";

test.each([
  ["mailto:ops@example.com", "Contact the operator of this gateway (ops@example.com). See "],
  [
    "https://example.com/help?from=api",
    "Contact the operator of this gateway (https://example.com/help?from=api). See ",
  ],
  [null, "Contact the operator of this gateway. See "],
])("whoever is suspended is told why, and to write to %p", (contact, said) => {
  const { message } = errorObject(suspension("chargeback", contact), "http://g.test");
  expect(message).toStartWith("This account is suspended after a chargeback (chargeback). ");
  expect(message).toEndWith(`${said}http://g.test/docs/errors#account_suspended`);
});
