import { expect, test } from "bun:test";
import { ollamaOrigin } from "../../src/config/ollama.ts";

test.each([
  ["localhost", "http://localhost:11434"],
  ["127.0.0.1:1234", "http://127.0.0.1:1234"],
  ["0.0.0.0", "http://127.0.0.1:11434"],
  ["[::]:1234", "http://127.0.0.1:1234"],
  ["http://box", "http://box:11434"],
  ["http://box:80", "http://box"],
  ["https://ollama.example.com", "https://ollama.example.com"],
  ["http://box:11434/", "http://box:11434"],
  ["", null],
  [undefined, null],
  ["http://", null],
])("OLLAMA_HOST %s means %s", (text, origin) => {
  expect(ollamaOrigin(text)).toBe(origin);
});
