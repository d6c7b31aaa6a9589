import { expect, test } from "bun:test";
import { parseHead } from "../../src/hosts/http1/head.ts";
import { HostFault } from "../../src/hosts/transport.ts";

const fieldsOf = (...lines: string[]) => {
  const head = parseHead(["HTTP/1.1 200 OK", ...lines].join("\r\n"));
  if (head instanceof HostFault) throw new Error(head.message);
  return head.headers;
};

test("a field is found however its name is written", () => {
  for (const name of ["retry-after", "Retry-After", "RETRY-AFTER"])
    expect(fieldsOf("content-length: 0", `${name}:7 `).get("retry-after")).toBe("7");
});

test("a name that begins or ends like another is another", () => {
  const fields = fieldsOf("x-age: 1", "age-x: 2", "ag: e: 3", "retry-after: 4");
  expect(fields.get("age")).toBeUndefined();
  expect(fields.has("ag")).toBe(true);
  expect([...fields]).toEqual([
    ["x-age", "1"],
    ["age-x", "2"],
    ["ag", "e: 3"],
    ["retry-after", "4"],
  ]);
});

test("a field without a value is there, and empty", () => {
  expect(fieldsOf("x-empty:").get("x-empty")).toBe("");
  expect(fieldsOf("x-empty:", "x-empty: 1").get("x-empty")).toBe(", 1");
});
