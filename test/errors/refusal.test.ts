import { expect, test } from "bun:test";
import { errorObject, refusalHeaders, refuse } from "../../src/errors/refusal.ts";
import { nanoUsd } from "../../src/units/usd.ts";

const LINK = "See https://gw.example/docs/errors#invalid_request";

test.each([
  ["a host's sentence without its full stop", "bad temperature", `bad temperature. ${LINK}`],
  ["a whole sentence", "It failed.", `It failed. ${LINK}`],
  ["a question", "Did you mean it?", `Did you mean it? ${LINK}`],
  ["a line end after it", "It failed.\n", `It failed. ${LINK}`],
])("%s is ended before the link", (_, message, whole) => {
  expect(errorObject(refuse("invalid_request", message), "https://gw.example").message).toBe(whole);
});

test.each([
  [0, "0"],
  [1, "0.000000001"],
  [250_000_000, "0.25"],
  [3_000_000_000, "3"],
])("x-gateway-balance-usd writes %d nano-dollars without an exponent", (nano, header) => {
  const refusal = refuse("insufficient_credit", "Too little.", { balance: nanoUsd(nano) });
  expect(refusalHeaders(refusal)["x-gateway-balance-usd"]).toBe(header);
});
