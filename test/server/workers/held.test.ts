import { describe } from "bun:test";
import { testHeldAmounts } from "../../process/held-cases.ts";

describe("amounts that open requests of three workers hold, with SQLite", () => {
  testHeldAmounts({ processes: 1, config: async () => "store: sqlite\nworkers: 3" });
});
