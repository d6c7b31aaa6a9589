import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Browser } from "playwright-core";
import { until } from "../fakes/until.ts";
import { type Made, type OpenGateway, open } from "../gateway/open.ts";
import { ADMIN } from "../process/gateway.ts";
import { browserMissing, endVisits, launch, Visitor } from "./browser.ts";

describe.skipIf(browserMissing)("every page", () => {
  let gateway: OpenGateway;
  let browser: Browser;
  let owner: Made;
  let receipt = "";

  beforeAll(async () => {
    gateway = await open("");
    browser = await launch();
    owner = await gateway.key(30, { name: "a-key-with-quite-a-long-name-that-has-to-fit-somewhere" });
    const answer = await gateway.chat(owner.key, { model: "sim/echo" });
    receipt = answer.headers.get("x-gateway-receipt")!;
    // The status page is at its widest once it tells of requests.
    await gateway.chat(owner.key, { model: "sim/echo", stream: true });
    await until(async () => (await gateway.send("GET", "/status")).text.includes("95% within"));
    await gateway.send("POST", "/v1/budgets", {
      bearer: owner.recovery_secret,
      json: { name: "a".repeat(64), cap_usd: 1, window: "week" },
    });
  });
  afterAll(async () => {
    await endVisits(browser);
    await gateway?.close();
  });

  const PAGES = (): [string, string][] => [
    ["/dashboard#/", "Overview"],
    ["/dashboard#/keys", "Keys"],
    [`/dashboard#/keys/${owner.id}`, "a-key-with-quite-a-long-name-that-has-to-fit-somewhere"],
    ["/dashboard#/budgets", "Budgets"],
    ["/dashboard#/receipts", "Receipts"],
    [`/dashboard#/receipts/${receipt}`, "sim/echo"],
    ["/dashboard#/credit", "Credit"],
    ["/dashboard#/models", "Models"],
    ["/dashboard#/playground", "Playground"],
    ["/dashboard#/account", "Account"],
    ["/admin#/", "Hosts"],
    ["/admin#/balances", "Balances"],
    [`/admin#/balances/${owner.balance_id}`, "Balance"],
    ["/admin#/books", "Books"],
    ["/admin#/config", "Configuration"],
    ["/status", "All models are available."],
    ["/docs/errors", "Errors reference"],
    ["/docs/api", "API reference"],
  ];

  /** Signed in to both applications, as a reload would find them. */
  async function insider(width: number): Promise<Visitor> {
    const visitor = await Visitor.arrive(browser, gateway.url, { width });
    await visitor.page.addInitScript(
      ([recovery, admin]) => {
        sessionStorage.setItem("gateway-recovery", recovery!);
        sessionStorage.setItem("gateway-admin", admin!);
      },
      [owner.recovery_secret, ADMIN],
    );
    return visitor;
  }

  test.each([390, 320])(
    "fits into a window of %p pixels, under one heading and one main landmark, with a menu that shows where it is; whatever can be pressed or filled in has a name",
    async (width) => {
      const visitor = await insider(width);
      const { page } = visitor;
      for (const [path, heading] of PAGES()) {
        await visitor.goto("/readyz");
        await visitor.goto(path);
        await page.getByRole("heading", { level: 1, name: heading }).waitFor();
        await page.waitForFunction(() => document.querySelector(".waiting") === null);
        expect([path, await page.evaluate(() => document.documentElement.scrollWidth)]).toEqual([
          path,
          width,
        ]);
        expect([path, await page.getByRole("main").count(), await page.locator("h1").count()]).toEqual([
          path,
          1,
          1,
        ]);
        expect([path, await page.evaluate(nameless)]).toEqual([path, []]);
        if (path.includes("#/")) {
          const link = page.locator("nav [aria-current]");
          await link.waitFor();
          const { left, right } = await link.evaluate((shown) => shown.getBoundingClientRect());
          expect([path, left >= 0, right <= width]).toEqual([path, true, true]);
        }
      }
      expect(visitor.complaints).toEqual([]);
    },
  );

  test("a new key is made and saved with the keyboard alone", async () => {
    const visitor = await Visitor.arrive(browser, gateway.url);
    const { page } = visitor;
    await visitor.goto("/dashboard");
    await visitor.button("Create my key").waitFor();
    /** Goes on with Tab to the element of this name, as somebody without a mouse does. */
    const tabTo = async (name: RegExp) => {
      for (let stop = 0; stop < 40; stop++) {
        await page.keyboard.press("Tab");
        const reached = await page.evaluate(() => {
          const element = document.activeElement as HTMLInputElement;
          return (
            element.getAttribute("aria-label") ??
            element.labels?.[0]?.textContent ??
            element.textContent ??
            ""
          );
        });
        if (name.test(reached)) return;
      }
      throw new Error(`Tab never reached ${name}`);
    };
    await tabTo(/^Create my key$/);
    await page.keyboard.press("Enter");
    await visitor.heading("Save both secrets now").waitFor();
    await tabTo(/^I saved the API key$/);
    await page.keyboard.press("Space");
    await tabTo(/^I saved the recovery link$/);
    await page.keyboard.press("Space");
    await tabTo(/^Continue$/);
    await page.keyboard.press("Enter");
    await visitor.heading("Overview").waitFor();
    await tabTo(/^Playground$/);
    await page.keyboard.press("Enter");
    await tabTo(/^Message$/);
    await page.keyboard.type("by keyboard");
    await page.keyboard.press("Enter");
    await visitor.link("Receipt of this answer").waitFor();
    expect(visitor.complaints).toEqual([]);
  });
});

/** Run in the page. */
const nameless = (): string[] =>
  [...document.querySelectorAll("button, a[href], input, select, textarea")]
    .filter((element) => {
      const labels = (element as HTMLInputElement).labels ?? [];
      return !element.textContent?.trim() && !element.getAttribute("aria-label") && labels.length === 0;
    })
    .map((element) => element.outerHTML);
