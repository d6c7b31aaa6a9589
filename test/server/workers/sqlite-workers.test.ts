import { describe } from "bun:test";
import { testLimitsOfWorkers } from "./limit-cases.ts";
import { testWorkersTogether } from "./together-cases.ts";
import { testWorkers } from "./workers-cases.ts";

const sqlite = async () => "sqlite";

describe("workers on one port, with SQLite", () => testWorkers(sqlite));
describe("what several workers show as one, with SQLite", () => testWorkersTogether(sqlite));
describe("runs and caps of end users at three workers on one port, with SQLite", () =>
  testLimitsOfWorkers(sqlite));
