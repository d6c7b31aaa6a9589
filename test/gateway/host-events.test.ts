import { test } from "bun:test";
import { hostThatFails } from "./host-event-cases.ts";

test(
  "the operator's list of events has once that a host is down, and once that it serves again",
  () => hostThatFails(1, ""),
  60_000,
);
