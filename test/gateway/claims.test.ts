import { describe } from "bun:test";
import { claimsAtProcesses } from "./claims.ts";

describe("a payment taken back at one gateway", () => claimsAtProcesses(1, async () => ""));
describe("a payment taken back at two workers", () => claimsAtProcesses(1, async () => "workers: 2"));
