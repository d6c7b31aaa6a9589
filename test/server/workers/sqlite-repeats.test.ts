import { describe } from "bun:test";
import { testRepeatsOfWorkers } from "./repeat-cases.ts";

describe("repeats at three workers on one port, with SQLite", () =>
  testRepeatsOfWorkers(async () => "sqlite"));
