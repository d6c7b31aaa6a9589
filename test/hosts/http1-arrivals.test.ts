import { expect, test } from "bun:test";
import { Arrivals } from "../../src/hosts/http1-arrivals.ts";
import type { Connection, Tenant } from "../../src/hosts/http1-connection.ts";

const tenant = {} as Tenant;
const bytes = (text: string) => new TextEncoder().encode(text);
const turn = () => new Promise((resolve) => setImmediate(resolve));

/** Notes what it is handed, and fails where the text says so. */
const connectionTo = (heard: string[]) =>
  ({
    deliver(_: Tenant, arrived: Uint8Array) {
      const text = new TextDecoder().decode(arrived);
      if (text === "bad") throw new Error("a fault of this tenant");
      heard.push(text);
    },
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

test("a fault at one keeps nothing from the others", async () => {
  const heard: string[] = [];
  const arrivals = new Arrivals();
  for (const text of ["1", "bad", "2", "3"]) arrivals.add(connectionTo(heard), tenant, bytes(text));
  expect(() => arrivals.deliver()).toThrow("a fault of this tenant");
  await turn();
  expect(heard).toEqual(["1", "2", "3"]);
});
