import { describe } from "bun:test";
import { Fleet } from "../../process/contention.ts";
import { testContention } from "../../process/contention-cases.ts";

describe("two workers on one port, with SQLite", () => {
  testContention(() => Fleet.start(1, "store: sqlite\nworkers: 2"));
});
