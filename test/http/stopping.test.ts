import { afterAll, expect, test } from "bun:test";
import { TestGateway } from "./test-gateway.ts";

/** A gateway that has had a stop signal: load balancers must not use a connection again that is about to end. */
const gateway = new TestGateway();
const key = (await gateway.setUp()).key;
afterAll(() => gateway.stop());

const fail = () => Promise.reject(new Error("broken"));
const failWhileSettingsAreRead = () =>
  Object.defineProperty(gateway, "settings", {
    configurable: true,
    get() {
      throw new Error("broken");
    },
  });

test.each<[string, string, string, number, (() => unknown)?]>([
  ["an answer", "POST", "/v1/chat/completions", 200],
  ["an operation's answer", "GET", "/v1/me", 200],
  ["a refusal", "GET", "/v1/receipts?limit=x", 400],
  ["a path that is not served", "GET", "/nowhere", 400],
  ["a page that has moved", "GET", "/docs", 308],
  ["a failure of an endpoint", "GET", "/v1/usage", 500, () => (gateway.usage = fail)],
  ["a failure outside of one", "GET", "/nowhere", 500, failWhileSettingsAreRead],
])(
  "%s closes its connection once the gateway stops, and not before",
  async (_, method, path, status, given) => {
    const { settings, usage } = gateway;
    given?.();
    for (const stopping of [false, true]) {
      gateway.stopping = stopping;
      const response = await fetch(gateway.url + path, {
        method,
        headers: { authorization: `Bearer ${key}` },
        redirect: "manual",
        ...(method === "POST" ? { body: "{}" } : {}),
      });
      await response.arrayBuffer();
      expect([response.status, response.headers.get("connection")]).toEqual([
        status,
        stopping ? "close" : null,
      ]);
    }
    gateway.stopping = false;
    gateway.usage = usage;
    Object.defineProperty(gateway, "settings", { value: settings, writable: true, configurable: true });
  },
);
