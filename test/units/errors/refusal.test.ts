import { expect, test } from "bun:test";
import { ERROR_CODES, ERRORS } from "../../../src/units/errors/codes.ts";
import {
  errorObject,
  type RefusalDetails,
  refusalHeaders,
  refuse,
} from "../../../src/units/errors/refusal.ts";
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

test.each(ERROR_CODES)("%s says how long to wait if it is a 429 or 503, from any room", (code) => {
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

test.each<[string, RefusalDetails, Record<string, string>]>([
  ["nothing of its own", {}, { "x-should-retry": "false" }],
  ["a wait", { retryAfterS: 7 }, { "retry-after": "7", "x-should-retry": "false" }],
  ["a retry after all", { shouldRetry: true }, { "x-should-retry": "true" }],
  ["the connection's end", { closing: true }, { connection: "close", "x-should-retry": "false" }],
  [
    "another protocol",
    { upgrade: "websocket" },
    { connection: "upgrade", upgrade: "websocket", "x-should-retry": "false" },
  ],
  [
    "how it can be paid for",
    { paymentRequired: "x" },
    { "payment-required": "x", "x-should-retry": "false" },
  ],
])("the headers of a refusal with %s", (_, details, headers) => {
  expect(refusalHeaders(refuse("invalid_request", "No.", details))).toEqual(headers);
});

test.each(ERROR_CODES)("%s lets clients repeat by themselves only where that helps", (code) => {
  const { retryable } = ERRORS[code];
  expect(refusalHeaders(refuse(code, "No."))["x-should-retry"]).toEqual(retryable ? undefined : "false");
});
