import { describe } from "bun:test";
import { testChangedLimits } from "./changed-limits.ts";

describe("on SQLite", () => testChangedLimits(1, async () => ""));
