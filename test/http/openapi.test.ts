import { afterAll, describe, expect, test } from "bun:test";
import { Validator } from "@seriousme/openapi-schema-validator";
import { httpApp } from "../../src/http/app.ts";
import type { Operation } from "../../src/http/pages/openapi.ts";
import { Conformity } from "./conformity.ts";
import { ADMIN_TOKEN, TestGateway } from "./test-gateway.ts";

const HELD_FIELDS = ["held_usd", "available_usd", "held_nano", "available_nano", "open_calls"];

const gateway = new TestGateway();
const conformity = await Conformity.of(gateway.url);
afterAll(() => gateway.stop());

describe("the API's document", () => {
  test("is an OpenAPI 3.1 document", async () => {
    const { valid, errors } = await new Validator().validate(structuredClone(conformity.document) as never);
    expect(errors ?? []).toEqual([]);
    expect(valid).toBe(true);
    expect(conformity.document.openapi).toBe("3.1.1");
    expect(conformity.document.servers).toEqual([{ url: "http://gateway.test" }]);
  });

  test("has every endpoint that is served but what browsers ask before they call one, and no other", () => {
    const served = httpApp(gateway.deps)
      .routes.filter(({ method }) => method !== "OPTIONS")
      .map(({ method, path }) => `${method} ${path.replaceAll(/:(\w+)/g, "{$1}")}`)
      .filter((name) => !name.includes(" /v1/v1/"));
    expect(conformity.operations.map(({ name }) => name).sort()).toEqual(served.sort());
  });

  test("says whose open requests are counted wherever an amount depends on them", () => {
    const unmarked: string[] = [];
    const visit = (schema: unknown, path: string): void => {
      if (typeof schema !== "object" || schema === null) return;
      const { properties } = schema as { properties?: Record<string, unknown> };
      const names = Object.keys(properties ?? {});
      // A receipt's request has ended: what it held does not change.
      const isReceipt = names.includes("write_off_usd");
      if (!isReceipt && names.some((name) => HELD_FIELDS.includes(name)) && !names.includes("held_at"))
        unmarked.push(path);
      for (const [name, part] of Object.entries(schema)) visit(part, `${path}/${name}`);
    };
    visit(conformity.document, "");
    expect(unmarked).toEqual([]);
  });

  test("gives each operation an id of its own and says what it does", () => {
    const ids = conformity.operations.map(({ operation }) => operation.operationId);
    expect(new Set(ids).size).toBe(ids.length);
    for (const { operation } of conformity.operations) {
      expect(operation.summary).toMatch(/^[A-Z].*[^.]$/);
    }
  });

  test("names credentials as the server asks for them: none, or 401 without", async () => {
    for (const { name, operation } of conformity.operations) {
      const [method, path] = name.split(" ") as [string, string];
      const { status } = await gateway.send(method, path.replaceAll(/\{\w+\}/g, "x"), {
        ...(method === "GET" ? {} : { body: {} }),
      });
      expect(`${name} ${status === 401}`).toBe(`${name} ${needsCredential(operation)}`);
    }
  });

  test("names the admin token where it alone opens", async () => {
    const { recovery_secret, key } = await gateway.setUp();
    for (const [index, { name, operation }] of conformity.operations.entries()) {
      if (!operation.security.some((one) => "admin" in one)) continue;
      const [method, path] = name.split(" ") as [string, string];
      for (const bearer of [recovery_secret, key]) {
        const { status } = await gateway.send(method, path.replaceAll(/\{\w+\}/g, "x"), {
          bearer,
          // Wrong ones are only so many from a network.
          headers: { "x-forwarded-for": `192.0.${index}.1` },
        });
        expect(`${name} ${status}`).toBe(`${name} 401`);
      }
      expect((await gateway.send(method, path, { bearer: ADMIN_TOKEN })).status).not.toBe(401);
    }
  });
});

const needsCredential = ({ security }: Operation): boolean =>
  security.length > 0 && security.every((one) => Object.keys(one).length > 0);

describe("answers are held against the document", () => {
  const wrong: [string, string, string, number, string, unknown, string][] = [
    ["an answer of another media type", "GET", "/readyz", 200, "application/json", {}, "application/json"],
    [
      "an endpoint that it does not have",
      "GET",
      "/v1/other",
      200,
      "application/json",
      {},
      "not in the document",
    ],
    [
      "an error of another form",
      "GET",
      "/v1/me",
      400,
      "application/json",
      { error: "no" },
      "/error must be object",
    ],
    [
      "a member that is missing",
      "DELETE",
      "/v1/keys/key_x",
      200,
      "application/json",
      { id: "key_x" },
      "'state'",
    ],
    [
      "a member that has no schema",
      "DELETE",
      "/v1/keys/key_x",
      200,
      "application/json",
      { id: "key_x", state: "revoked", hash: "…" },
      "hash",
    ],
  ];
  test.each(wrong)("%s is noticed", (_, method, path, status, type, json, why) => {
    expect(() => conformity.check(method, path, { status, type, json })).toThrow(why);
  });
});

test("the page has every operation and schema, and needs nothing from outside", async () => {
  const { text, headers } = await gateway.send("GET", "/docs/api");
  for (const { operation } of conformity.operations) {
    expect(text).toContain(`<section id="${operation.operationId}">`);
  }
  for (const name of Object.keys(conformity.document.components.schemas)) {
    expect(text).toContain(`id="schema-${name}"`);
  }
  expect(text).not.toMatch(/<script|(src|href)="(https?:)?\/\//);
  expect(headers.get("content-security-policy")).toContain("default-src 'none'");
  const targets = [...text.matchAll(/href="#([^"]+)"/g)].map(([, id]) => id!);
  for (const id of targets) expect(text).toContain(`id="${id}"`);
});
