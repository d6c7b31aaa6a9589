import { expect, test } from "bun:test";
import { Arrivals } from "../../src/hosts/http1/arrivals.ts";
import type { HostConnection } from "../../src/hosts/http1/connection.ts";

const turn = () => new Promise((resolve) => setImmediate(resolve));

/** Notes when it hands on what arrived. */
const connection = (name: string, heard: string[]) =>
  ({ deliver: () => void heard.push(name) }) as unknown as HostConnection;

test("what arrives in one turn is handed on at its end, in order", async () => {
  const heard: string[] = [];
  const arrivals = new Arrivals();
  arrivals.add(connection("1", heard));
  arrivals.add(connection("2", heard));
  expect(heard).toEqual([]);
  await turn();
  expect(heard).toEqual(["1", "2"]);
});

test("whoever has news of a socket's end can have everything handed on before, once", async () => {
  const heard: string[] = [];
  const arrivals = new Arrivals();
  arrivals.add(connection("1", heard));
  arrivals.deliver();
  expect(heard).toEqual(["1"]);
  await turn();
  expect(heard).toEqual(["1"]);
});
