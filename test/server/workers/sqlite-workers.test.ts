import { describe } from "bun:test";
import { testRunsOfWorkers } from "./run-cases.ts";
import { testTagCapsOfWorkers } from "./tag-cap-cases.ts";
import { testWorkersTogether } from "./together-cases.ts";
import { testWorkers } from "./workers-cases.ts";

const sqlite = async () => "sqlite";

describe("workers on one port, with SQLite", () => testWorkers(sqlite));
describe("what several workers show as one, with SQLite", () => testWorkersTogether(sqlite));
describe("runs at three workers on one port, with SQLite", () => testRunsOfWorkers(sqlite));
describe("caps of end users at three workers on one port, with SQLite", () => testTagCapsOfWorkers(sqlite));
