import { test } from "bun:test";
import { marginsOf } from "./margin-cases.ts";

test(
  "margins of customers, models and hosts are what was charged less what hosts charge, and a negative one is an event once",
  () => marginsOf(1, ""),
  60_000,
);
