import { expect, test } from "bun:test";
import { isGuessable } from "../../../src/customers/operators/token-strength.ts";

test.each([
  "gatewayadmin2026",
  "Admin-Token-2026!",
  "passwordpassword",
  "supersecrettoken",
  "Sommer2026Sommer",
  "aaaaaaaaaaaaaaaaaaaaaaaa",
  "1234567890123456",
  "abcdefghijklmnopqrstuvwxyz",
  "qwertyuiopasdfghjkl",
  "aurora-europe-aerial",
])("%s could be guessed", (token) => {
  expect(isGuessable(token)).toBe(true);
});

test.each([
  "9f3c1ab2e07d4458a6c1f0b35d2e9781",
  "or-admin-3J98t1WpEZ73CNmQviecrnyiWrnqRhWNLyXh8kPq2vTm",
  "f47ac10b-58cc-4372-a567-0e02b2c3d479",
  "VHN6Y3J5cHRvLXJhbmRvbQ==",
  "correct-horse-battery-staple-window",
])("%s could not", (token) => {
  expect(isGuessable(token)).toBe(false);
});
