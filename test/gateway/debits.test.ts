import { describe } from "bun:test";
import { testDebits } from "./debits.ts";

describe("credit taken back at one gateway", () => testDebits(1, async () => ""));
