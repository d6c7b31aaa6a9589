import { describe } from "bun:test";
import { testModelLists } from "./model-lists-cases.ts";

describe("model lists on three workers that share SQLite", () => testModelLists(async () => "sqlite"));
