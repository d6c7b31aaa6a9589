import { expect, test } from "bun:test";
import { Arrivals } from "../../src/hosts/http1/arrivals.ts";
import type { HostConnection } from "../../src/hosts/http1/connection.ts";

const turn = () => new Promise((resolve) => setImmediate(resolve));

/** Notes when it hands on what arrived. */
const connection = (name: string, received: string[]) =>
  ({ deliver: () => void received.push(name) }) as unknown as HostConnection;

test("what arrives in one turn is handed on at its end, in order", async () => {
  const received: string[] = [];
  const arrivals = new Arrivals();
  arrivals.add(connection("1", received));
  arrivals.add(connection("2", received));
  expect(received).toEqual([]);
  await turn();
  expect(received).toEqual(["1", "2"]);
});

test("a listener for a socket's end can have everything handed on before, once", async () => {
  const received: string[] = [];
  const arrivals = new Arrivals();
  arrivals.add(connection("1", received));
  arrivals.deliver();
  expect(received).toEqual(["1"]);
  await turn();
  expect(received).toEqual(["1"]);
});
