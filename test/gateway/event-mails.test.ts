import { test } from "bun:test";
import { mailsOf } from "./mail-cases.ts";

test(
  "owners have events mailed to their account's address, ten an hour at most",
  () => mailsOf(1, ""),
  60_000,
);
