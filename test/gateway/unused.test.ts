import { describe } from "bun:test";
import { unusedCases } from "./unused-cases.ts";

describe("balances and keys that nobody uses", () => unusedCases(async () => ""));
