import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Page } from "playwright-core";
import { type Made, type OpenGateway, open } from "../gateway/open.ts";
import { browserMissing, endVisits, launch } from "./browser.ts";

describe.skipIf(browserMissing)("a page of another origin", () => {
  let gateway: OpenGateway;
  let elsewhere: Bun.Server<unknown>;
  let page: Page;
  let owner: Made;

  beforeAll(async () => {
    gateway = await open("");
    owner = await gateway.key(10);
    // The nearest of strangers: another port of the same site, where no SameSite rule keeps cookies away.
    elsewhere = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      fetch: () => new Response("<!doctype html>", { headers: { "content-type": "text/html" } }),
    });
    page = await (await launch()).newPage();
    await page.goto(elsewhere.url.href);
  });
  afterAll(async () => {
    await endVisits();
    await elsewhere?.stop(true);
    await gateway?.close();
  });

  /** What the page gets to see; "refused" where the browser keeps the answer from it. */
  const send = (
    path: string,
    init: RequestInitOf,
  ): Promise<{ text: string; receipt: string | null } | "refused"> =>
    page.evaluate(
      async ([url, how]) => {
        try {
          const response = await fetch(url, how);
          return { text: await response.text(), receipt: response.headers.get("x-gateway-receipt") };
        } catch {
          return "refused" as const;
        }
      },
      [gateway.url + path, init] as const,
    );

  test("streams an answer with its key, and reads its receipt, with the headers that SDKs send", async () => {
    const headers = {
      authorization: `Bearer ${owner.key}`,
      "content-type": "application/json",
      "x-stainless-lang": "js",
      "openai-organization": "org",
      "anthropic-dangerous-direct-browser-access": "true",
    };
    const messages = [{ role: "user", content: "Hello" }];
    const body = JSON.stringify({ model: "sim/echo", stream: true, messages });
    const answer = await send("/v1/chat/completions", { method: "POST", headers, body });
    if (answer === "refused") throw new Error("the browser refused it");
    expect(answer.text).toEndWith("data: [DONE]\n\n");
    const receipt = await send(`/v1/receipts/${answer.receipt}`, { headers });
    expect(receipt).toMatchObject({ text: expect.stringContaining('"settled"') });
  });

  test("gets nothing by the visitor's session, makes no keys, and does nothing for an owner", async () => {
    const headers = { authorization: `Bearer ${owner.recovery_secret}` };
    expect([
      await send("/v1/me", { credentials: "include" }),
      await send("/v1/keys", { method: "POST" }),
      await send("/v1/keys", { headers }),
      await send("/v1/budgets", { headers }),
      await send("/admin/hosts", { headers }),
    ]).toEqual(Array(5).fill("refused"));
  });
});

interface RequestInitOf {
  readonly method?: string;
  readonly headers?: Record<string, string>;
  readonly body?: string;
  readonly credentials?: "include";
}
