import { describe, expect, test } from "bun:test";
import type { Model } from "../../src/catalog/catalog.ts";
import type { Key } from "../../src/customers/keys/key.ts";
import { nanoFromUsd } from "../../src/units/usd.ts";
import { json, status } from "../fakes/behaviours.ts";
import { type Behaviour, type FakeHost, hostRow } from "../fakes/host.ts";
import { chatText, messagesText } from "../fakes/transcripts.ts";
import { model, priceOf, route } from "../routing/world.ts";
import { openedPerTest } from "./serving.ts";
import { openTestGateway, read, requestBody, type TestGateway } from "./test-gateway.ts";

const { startHost } = openedPerTest();

/** `test/model` on one host, and `test/other`, at so many USD per million, on another. */
async function twoModels(
  first: Behaviour,
  second: Behaviour,
  key: Partial<Key> = {},
  { otherUsd = 2, creditUsd = 10 } = {},
): Promise<{ gateway: TestGateway; other: FakeHost }> {
  const speaks = ["chat.completions", "messages"] as const;
  const own = await startHost(() => first);
  const other = await startHost(() => second);
  const price = priceOf(otherUsd);
  const models: Model[] = [
    model("test/other", [{ ...route("second"), host: hostRow(other, { id: "second", speaks }), price }], {
      contextLength: 100_000,
    }),
  ];
  const auto = new Map([["both", ["test/model", "test/other"]]]);
  return {
    gateway: await openTestGateway([hostRow(own, { id: "first", speaks })], { models, auto, key, creditUsd }),
    other,
  };
}

const TOO_LONG = json(
  { error: { message: "This model's maximum context length is 8 tokens", code: "context_length_exceeded" } },
  400,
);
const REFUSED = json({ error: { message: "temperature must be at most 2" } }, 400);
const FINE = json(chatText().whole);

describe("models: any failure moves on, and what served is billed and reported", () => {
  const failures: [string, Behaviour][] = [
    ["a host that fails", status(503)],
    ["a rate limit", status(429)],
    ["a prompt that the host finds too long", TOO_LONG],
    ["a host's verdict on the request", REFUSED],
  ];
  for (const [name, behaviour] of failures) {
    test(name, async () => {
      const { gateway } = await twoModels(behaviour, FINE);
      const answer = await gateway.send(
        "chat.completions",
        requestBody("chat.completions", { models: ["test/other"] }),
      );
      expect(answer.status).toBe(200);
      expect(JSON.parse(await read(answer)).model).toBe("test/other");
      const receipt = gateway.receipt(answer);
      expect(receipt).toMatchObject({
        state: "settled",
        model_requested: "test/model",
        model: "test/other",
        host: "second",
      });
      expect(receipt.price).toMatchObject({ input: 2, output: 2 });
      expect(receipt.attempts).toHaveLength(2);
      await gateway.close();
    });
  }

  test("the last model's verdict is what the client receives", async () => {
    const { gateway } = await twoModels(status(503), REFUSED);
    const answer = await gateway.send(
      "chat.completions",
      requestBody("chat.completions", { models: ["test/other"] }),
    );
    expect(answer.status).toBe(400);
    expect(await read(answer)).toContain("temperature must be at most 2");
    await gateway.close();
  });

  test("without it, a verdict is final", async () => {
    const { gateway, other } = await twoModels(REFUSED, FINE);
    expect((await gateway.send("chat.completions", requestBody("chat.completions"))).status).toBe(400);
    expect(other.requests).toHaveLength(0);
    await gateway.close();
  });

  test("neither member reaches a host", async () => {
    const { gateway, other } = await twoModels(status(503), FINE);
    const wishes = { models: ["test/other"], route: "fallback", provider: { sort: "price" } };
    expect((await gateway.send("chat.completions", requestBody("chat.completions", wishes))).status).toBe(
      200,
    );
    expect(Object.keys(other.requests[0]!.json())).not.toContainAnyValues(["models", "route", "provider"]);
    await gateway.close();
  });
});

test("fallbacks on messages do the same", async () => {
  const { gateway } = await twoModels(status(529), json(messagesText().whole));
  const answer = await gateway.send(
    "messages",
    requestBody("messages", { fallbacks: [{ model: "test/other" }] }),
  );
  expect(answer.status).toBe(200);
  expect(gateway.receipt(answer)).toMatchObject({ model: "test/other", host: "second" });
  await gateway.close();
});

describe("a balance that covers the first model, and not the more expensive one that would take its place", () => {
  const POOR = { otherUsd: 5_000, creditUsd: 0.01 };
  const bodyOf = (more: object) => requestBody("chat.completions", { max_tokens: 20, ...more });

  test.each<[string, object]>([
    ["models", { models: ["test/other"] }],
    ["Auto", { model: "gateway/auto:both" }],
  ])("%s: the first one serves", async (_how, wish) => {
    const { gateway } = await twoModels(FINE, FINE, {}, POOR);
    const answer = await gateway.send("chat.completions", bodyOf(wish));
    expect(gateway.receipt(answer)).toMatchObject({ state: "settled", model: "test/model" });
    expect(gateway.receipt(answer).held_usd).toBeLessThan(0.01);
    await gateway.close();
  });

  test("the more expensive one is not tried when the first one fails, and Auto says why", async () => {
    const { gateway, other } = await twoModels(status(503), FINE, {}, POOR);
    const answer = await gateway.send("chat.completions", bodyOf({ model: "gateway/auto:both" }));
    expect(JSON.parse(await read(answer)).error).toMatchObject({
      code: "auto_unresolvable",
      message: expect.stringContaining("test/other (more expensive than what is left to spend)"),
    });
    expect(other.requests).toHaveLength(0);
    await gateway.close();
  });

  test("a cap of the key counts as the balance does", async () => {
    const dailyLimit = nanoFromUsd(0.01)!;
    const { gateway } = await twoModels(FINE, FINE, { dailyLimit }, { ...POOR, creditUsd: 10 });
    const answer = await gateway.send("chat.completions", bodyOf({ models: ["test/other"] }));
    expect(answer.status).toBe(200);
    await gateway.close();
  });

  test("without enough for the first, the refusal names what the first one could cost", async () => {
    const { gateway } = await twoModels(FINE, FINE, {}, { ...POOR, creditUsd: 0.000001 });
    const answer = await gateway.send("chat.completions", bodyOf({ models: ["test/other"] }));
    const { code, message } = JSON.parse(await read(answer)).error;
    expect(code).toBe("insufficient_credit");
    expect(Number(/worst case is \$(\d+\.\d+)/.exec(message)![1])).toBeLessThan(0.01);
    await gateway.close();
  });
});

describe("Auto", () => {
  const auto = (): object => requestBody("chat.completions", { model: "gateway/auto:both" });

  test("moves on from a model whose host says that the prompt is too long", async () => {
    const { gateway } = await twoModels(TOO_LONG, FINE);
    const answer = await gateway.send("chat.completions", auto());
    expect(JSON.parse(await read(answer)).model).toBe("test/other");
    expect(gateway.receipt(answer)).toMatchObject({
      model_requested: "gateway/auto:both",
      model: "test/other",
    });
    await gateway.close();
  });

  test("when all fail, says which were tried and which were skipped, and why", async () => {
    const { gateway } = await twoModels(status(503), FINE, { allowedModels: ["test/model"] });
    const answer = await gateway.send("chat.completions", auto());
    expect([answer.status, JSON.parse(await read(answer)).error]).toMatchObject([
      503,
      {
        code: "auto_unresolvable",
        message: expect.stringContaining(
          "failed (test/model); 1 host was tried. Skipped: test/other (not allowed on this key).",
        ),
      },
    ]);
    await gateway.close();
  });

  test("does not repeat a request elsewhere that a host refused for what it asks", async () => {
    const { gateway, other } = await twoModels(REFUSED, FINE);
    expect((await gateway.send("chat.completions", auto())).status).toBe(400);
    expect(other.requests).toHaveLength(0);
    await gateway.close();
  });
});
