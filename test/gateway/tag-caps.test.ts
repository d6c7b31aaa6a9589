import { describe } from "bun:test";
import { testTagCaps } from "./tag-caps.ts";

describe("at one gateway on SQLite", () => {
  testTagCaps(1, async () => "");
});
