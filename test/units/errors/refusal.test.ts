import { expect, test } from "bun:test";
import { ERROR_CODES, ERRORS } from "../../../src/units/errors/codes.ts";
import { errorObject, refusalHeaders, refuse } from "../../../src/units/errors/refusal.ts";
import { nanoUsd } from "../../../src/units/usd.ts";

const LINK = "See https://gw.example/docs/errors#invalid_request";

test.each([
  ["a host's sentence without its full stop", "bad temperature", `bad temperature. ${LINK}`],
  ["a whole sentence", "It failed.", `It failed. ${LINK}`],
  ["a question", "Did you mean it?", `Did you mean it? ${LINK}`],
  ["a line end after it", "It failed.\n", `It failed. ${LINK}`],
])("%s is ended before the link", (_, message, whole) => {
  expect(errorObject(refuse("invalid_request", message), "https://gw.example").message).toBe(whole);
});

test.each(ERROR_CODES)("%s says how long to wait if it is a 429 or 503, whoever refuses", (code) => {
  const waits = [429, 503].includes(ERRORS[code].status);
  expect(refusalHeaders(refuse(code, "No."))["retry-after"]).toEqual(waits ? expect.any(String) : undefined);
  if (waits) expect(refusalHeaders(refuse(code, "No.", { retryAfterS: 9 }))["retry-after"]).toBe("9");
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

test.each(ERROR_CODES)("%s: its type and whether it may be repeated follow from its status", (code) => {
  const { status, type, retryable } = ERRORS[code];
  const expected =
    status === 429 ? "rate_limit_error" : status >= 500 ? "api_error" : "invalid_request_error";
  expect([type, retryable]).toEqual([expected, expected !== "invalid_request_error"]);
});
