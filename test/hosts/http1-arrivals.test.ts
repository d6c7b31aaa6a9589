import { expect, test } from "bun:test";
import { Arrivals } from "../../src/hosts/http1/arrivals.ts";
import type { Connection, Tenant } from "../../src/hosts/http1/connection.ts";

const tenant = {} as Tenant;
const bytes = (text: string) => new TextEncoder().encode(text);
const turn = () => new Promise((resolve) => setImmediate(resolve));

/** Notes what it is handed. */
const connectionTo = (heard: string[]) =>
  ({
    deliver: (_: Tenant, arrived: Uint8Array) => void heard.push(new TextDecoder().decode(arrived)),
  }) as Connection;

test("what arrives in one turn is handed on at its end, in order", async () => {
  const heard: string[] = [];
  const arrivals = new Arrivals();
  const [one, other] = [connectionTo(heard), connectionTo(heard)];
  arrivals.add(one, tenant, bytes("1"));
  arrivals.add(other, tenant, bytes("2"));
  arrivals.add(one, tenant, bytes("3"));
  expect(heard).toEqual([]);
  await turn();
  expect(heard).toEqual(["1", "2", "3"]);
});

test("whoever has news of a socket's end can have everything handed on before, once", async () => {
  const heard: string[] = [];
  const arrivals = new Arrivals();
  arrivals.add(connectionTo(heard), tenant, bytes("1"));
  arrivals.deliver();
  expect(heard).toEqual(["1"]);
  await turn();
  expect(heard).toEqual(["1"]);
});
