import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { FakeStripe } from "../fakes/stripe.ts";
import { until } from "../fakes/until.ts";
import { type Made, type OpenGateway, open } from "../gateway/open.ts";
import { ADMIN } from "../process/gateway.ts";
import { violations } from "./accessibility.ts";
import { type Appearance, browserMissing, endVisits, Visitor } from "./browser.ts";

describe.skipIf(browserMissing)("every page", () => {
  let gateway: OpenGateway;
  let owner: Made;
  let stripe: FakeStripe;
  let receipt = "";
  let payment = "";

  beforeAll(async () => {
    stripe = new FakeStripe();
    gateway = await open(`catalog: public
payments: { stripe: { secret_key: sk_test_1, webhook_secret: whsec_1, api_base: "${stripe.url}" } }
`);
    owner = await gateway.key(30, { name: "a-key-with-quite-a-long-name-that-has-to-fit-somewhere" });
    const asOwner = { bearer: owner.recovery_secret };
    await gateway.send("POST", "/v1/me/saved", { ...asOwner, json: { key: owner.key } });
    const card = { amount_usd: 500, rail: "card" };
    payment = (await gateway.send("POST", "/v1/credits", { ...asOwner, json: card })).json.id;
    const answer = await gateway.chat(owner.key, { model: "sim/echo" });
    receipt = answer.headers.get("x-gateway-receipt")!;
    // The status page is at its widest once it tells of requests.
    await gateway.chat(owner.key, { model: "sim/echo", stream: true });
    await until(async () => (await gateway.send("GET", "/status")).text.includes("95% within"));
    await gateway.send("POST", "/v1/budgets", {
      bearer: owner.recovery_secret,
      json: { name: "a".repeat(64), cap_usd: 1, window: "week" },
    });
    const each = { name: "each-user", cap_usd: 1, window: "day", per: "tag:user" };
    await gateway.send("POST", "/v1/budgets", { ...asOwner, json: each });
    await gateway.admin("/admin/operators", { name: "a".repeat(32), role: "operate" });
    await gateway.send("POST", "/v1/webhooks", {
      bearer: owner.recovery_secret,
      json: { url: `https://hooks.example.com/${"a".repeat(60)}`, events: ["claim.undone"] },
    });
  });
  afterEach(() => endVisits());
  afterAll(async () => {
    await gateway?.close();
    await stripe?.close();
  });

  const PAGES = (): [string, string][] => [
    ["/dashboard#/", "Overview"],
    ["/dashboard#/keys", "Keys"],
    [`/dashboard#/keys/${owner.id}`, "a-key-with-quite-a-long-name-that-has-to-fit-somewhere"],
    ["/dashboard#/budgets", "Budgets"],
    ["/dashboard#/receipts", "Receipts"],
    [`/dashboard#/receipts/${receipt}`, "sim/echo"],
    ["/dashboard#/credit", "Credit"],
    [`/dashboard#/credit/${payment}`, "Payment"],
    ["/dashboard#/models", "Models"],
    ["/dashboard#/playground", "Playground"],
    ["/dashboard#/webhooks", "Webhooks"],
    ["/dashboard#/account", "Account"],
    ["/admin#/", "Overview"],
    ["/admin#/requests", "Requests"],
    ["/admin#/hosts", "Hosts"],
    ["/admin#/balances", "Balances"],
    [`/admin#/balances/${owner.balance_id}`, "Balance"],
    [`/admin#/receipts/${receipt}`, "sim/echo"],
    [`/admin#/keys/${owner.id}`, "a-key-with-quite-a-long-name-that-has-to-fit-somewhere"],
    ["/admin#/payments", "Payments"],
    ["/admin#/usage", "Usage"],
    ["/admin#/events", "Events"],
    ["/admin#/books", "Books"],
    ["/admin#/changes", "Changes"],
    ["/admin#/operators", "Operators"],
    ["/admin#/config", "Configuration"],
    ["/models", "Models"],
    ["/models/sim/echo", "Simulated echo"],
    ["/status", "All models are available."],
    ["/docs/errors", "Errors reference"],
    ["/docs/api", "API reference"],
  ];

  /** Signed in to both applications, as a reload would find them. */
  async function insider(appearance: Appearance = {}): Promise<Visitor> {
    const visitor = await Visitor.arrive(gateway.url, appearance);
    await visitor.enter(owner.recovery_secret);
    return visitor;
  }

  /** Only the first page of an application is loaded; the others are gone to as by a link. */
  async function arrive({ page }: Visitor, path: string, heading: string): Promise<void> {
    await page.goto(gateway.url + path);
    await page.getByRole("heading", { level: 1, name: heading, exact: true }).waitFor();
    await page.waitForFunction(() => document.querySelector(".waiting") === null);
  }

  test(
    "at 320, 375, 768, 1024 and 1280 pixels, light and dark: nothing is wider than the window, every value of every table is to be seen and named, and no word is broken; one heading, one main landmark, a menu that shows where it is; axe-core has no serious complaint, such as about a button without a name",
    async () => {
      const visitor = await insider();
      const { page } = visitor;
      for (const [path, heading] of PAGES()) {
        await arrive(visitor, path, heading);
        expect([path, await page.getByRole("main").count(), await page.locator("h1").count()]).toEqual([
          path,
          1,
          1,
        ]);
        for (const { width, colorScheme, judged } of APPEARANCES) {
          await page.setViewportSize({ width, height: 800 });
          await page.emulateMedia({ colorScheme });
          const seen = [path, width, colorScheme];
          expect([...seen, await page.evaluate(tooWide)]).toEqual([...seen, []]);
          expect([...seen, await page.evaluate(unseenValues)]).toEqual([...seen, []]);
          expect([...seen, await page.evaluate(brokenWords)]).toEqual([...seen, []]);
          if (path.includes("#/")) await page.waitForFunction(isLocationShown);
          if (judged) expect([...seen, await violations(page)]).toEqual([...seen, []]);
        }
      }
    },
    LONG_MS,
  );

  test(
    "the doors, dialogs and an answer have nothing that axe-core calls serious, nor is any text faint in the dark",
    async () => {
      const visitor = await Visitor.arrive(gateway.url, { width: 375 });
      const { page } = visitor;
      const judge = async (what: string) => {
        expect([what, await page.evaluate(tooWide), await violations(page)]).toEqual([what, [], []]);
        await page.emulateMedia({ colorScheme: "dark" });
        expect([what, await violations(page, ["color-contrast"])]).toEqual([what, []]);
        await page.emulateMedia({ colorScheme: "light" });
      };
      await visitor.goto("/dashboard");
      await visitor.button("Create my key").waitFor();
      await judge("welcome");
      await visitor.button("Create my key").click();
      await visitor.heading("Save both secrets now").waitFor();
      await judge("save secrets");
      await visitor.field("I saved the API key").check();
      await visitor.field("I saved the recovery link").check();
      await visitor.button("Continue").click();
      await visitor.link("Playground").click();
      await visitor.field("Message").fill("**bold**");
      await page.keyboard.press("Enter");
      await visitor.link("Receipt of this answer").waitFor();
      await judge("an answer");
      await visitor.link("Keys").click();
      await visitor.button("New key").click();
      await page.getByRole("dialog").waitFor();
      await judge("new key");
      await page.keyboard.press("Escape");
      await visitor.link("Unnamed key").click();
      for (const name of ["Change limits", "Rotate", "Revoke"]) {
        await visitor.button(name).click();
        await page.getByRole("dialog").waitFor();
        await judge(name);
        await page.keyboard.press("Escape");
      }
      await visitor.goto("/admin");
      await visitor.field("Admin token").waitFor();
      await judge("the operator's door");
      await visitor.field("Admin token").fill(ADMIN);
      await visitor.button("Open").click();
      await visitor.link("Balances").click();
      await visitor.link(owner.balance_id).click();
      for (const name of ["Add credit", "Take credit back", "Suspend", /^Limits/, /^Revoke/, /^Change/]) {
        await visitor.button(name).first().click();
        await page.getByRole("dialog").waitFor();
        await page.waitForFunction(() => document.querySelector("dialog .waiting") === null);
        await judge(String(name));
        await page.keyboard.press("Escape");
        await page.getByRole("dialog").waitFor({ state: "detached" });
      }
      await visitor.link("Operators").click();
      for (const name of ["Add operator", /^New token/, /^Remove/]) {
        await visitor.button(name).first().click();
        await page.getByRole("dialog").waitFor();
        await judge(String(name));
        await page.keyboard.press("Escape");
      }
    },
    LONG_MS,
  );

  test(
    "by keyboard alone, the focus is always to be seen, goes from top to bottom, stays in a dialog and comes back from it",
    async () => {
      const visitor = await insider({ width: 1280 });
      const { page } = visitor;
      for (const [path, heading] of PAGES()) {
        await arrive(visitor, path, heading);
        const stops: FocusStop[] = [];
        for (let stop = 0; stop < MAX_STOPS; stop++) {
          await page.keyboard.press("Tab");
          const reached = await page.evaluate(focusStop);
          if (reached === null || reached.position === stops[0]?.position) break;
          stops.push(reached);
        }
        expect([path, stops.length > 0]).toEqual([path, true]);
        if (path.includes("#/")) expect([path, stops[0]!.html]).toEqual([path, SKIP]);
        expect([path, stops.filter(({ isSeen }) => !isSeen)]).toEqual([path, []]);
        const positions = stops.map(({ position }) => position);
        expect([path, positions]).toEqual([path, positions.toSorted((a, b) => a - b)]);
      }
      await visitor.goto("/dashboard#/keys");
      await visitor.button("New key").focus();
      await page.keyboard.press("Enter");
      await page.locator("dialog :focus").waitFor();
      for (let stop = 0; stop < MAX_STOPS; stop++) {
        await page.keyboard.press("Tab");
        // Between its last and its first stop, browsers let the focus rest on themselves.
        expect(
          await page.evaluate(() => {
            const { activeElement } = document;
            return activeElement === document.body || activeElement?.closest("dialog") !== null;
          }),
        ).toBe(true);
      }
      await page.keyboard.press("Escape");
      await page.getByRole("dialog").waitFor({ state: "detached" });
      expect(await page.locator(":focus").textContent()).toBe("New key");
    },
    LONG_MS,
  );

  test(
    "Tab begins at “Skip to content” after every route change: by a link, by going back, and from within a page",
    async () => {
      const visitor = await insider({ width: 1280 });
      const { page } = visitor;
      const beginsAtTop = async (heading: string) => {
        await visitor.heading(heading).waitFor();
        await page.waitForFunction(() => document.querySelector(".waiting") === null);
        await page.keyboard.press("Tab");
        expect([heading, (await page.evaluate(focusStop))?.html]).toEqual([heading, SKIP]);
      };
      for (const [path, links] of MENUS) {
        await visitor.goto(path);
        for (const name of links) {
          await visitor.link(name).click();
          await beginsAtTop(name);
          await page.keyboard.press("Enter");
          expect(await page.evaluate(() => document.activeElement?.id)).toBe("main");
        }
        for (const name of links.toReversed().slice(1)) {
          await page.goBack();
          await beginsAtTop(name);
        }
      }
    },
    LONG_MS,
  );

  test("a link that ends in the middle of an escaped character is a page that is not there, or a secret that opens nothing", async () => {
    const visitor = await insider();
    await arrive(visitor, "/dashboard#/keys%", "Not found");
    await visitor.page.reload();
    await visitor.heading("Not found").waitFor();
    await arrive(visitor, "/dashboard#recover=or-rec-%E4", "Use this recovery link?");
  });

  test("a new key is made and saved with the keyboard alone", async () => {
    const visitor = await Visitor.arrive(gateway.url);
    const { page } = visitor;
    await visitor.goto("/dashboard");
    await visitor.button("Create my key").waitFor();
    /** Goes on with Tab to the element of this name, as somebody without a mouse does. */
    const tabTo = async (name: RegExp) => {
      for (let stop = 0; stop < 60; stop++) {
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
    await page.getByLabel("Message", { exact: true }).waitFor();
    await tabTo(/^Message$/);
    await page.keyboard.type("by keyboard");
    await page.keyboard.press("Enter");
    await visitor.link("Receipt of this answer").waitFor();
  });
});

/** Contrast depends on the scheme, and what is shown on the width: two of them are judged by axe-core, which takes long. */
const APPEARANCES: readonly { width: number; colorScheme: "light" | "dark"; judged: boolean }[] = [
  { width: 1280, colorScheme: "light", judged: true },
  { width: 1280, colorScheme: "dark", judged: false },
  { width: 1024, colorScheme: "light", judged: false },
  { width: 768, colorScheme: "light", judged: false },
  { width: 375, colorScheme: "light", judged: false },
  { width: 320, colorScheme: "light", judged: false },
  { width: 320, colorScheme: "dark", judged: true },
];

/** Many pages, on a machine that may be ten times slower. */
const LONG_MS = 600_000;
const MAX_STOPS = 60;

const SKIP = '<button type="button" class="skip">Skip to content</button>';
const MENUS: readonly [path: string, links: readonly string[]][] = [
  ["/dashboard", ["Keys", "Receipts", "Credit", "Models", "Playground", "Account", "Receipts"]],
  ["/admin", ["Requests", "Hosts", "Balances", "Payments", "Usage", "Books", "Configuration"]],
];

interface FocusStop {
  readonly html: string;
  readonly isSeen: boolean;
  /** Where it stands in the document. */
  readonly position: number;
}

/** What has the focus; null where it has left the page. Run in the page. */
const focusStop = (): FocusStop | null => {
  const reached = document.activeElement;
  if (reached === null || reached === document.body) return null;
  // A choice that looks like buttons shows the focus on the label next to it.
  const shown = reached.matches(".segments input") ? reached.nextElementSibling! : reached;
  const { outlineStyle, outlineWidth } = getComputedStyle(shown);
  const { width, height, right } = shown.getBoundingClientRect();
  return {
    html: reached.outerHTML.slice(0, 120),
    isSeen: outlineStyle !== "none" && outlineWidth !== "0px" && width > 0 && height > 0 && right > 0,
    position: [...document.querySelectorAll("*")].indexOf(reached),
  };
};

/** What is wider than the window, or a table than its place. Run in the page. */
const tooWide = (): string[] => {
  const { scrollWidth } = document.scrollingElement!;
  return [
    ...(scrollWidth > innerWidth ? [`the page: ${scrollWidth}`] : []),
    ...[...document.querySelectorAll("#app .scroll:has(table)")]
      .filter((table) => table.scrollWidth > table.clientWidth)
      .map(
        (table) =>
          `a table: ${table.scrollWidth} in ${table.clientWidth}: ${table.textContent?.slice(0, 60)}`,
      ),
  ];
};

/** Values of tables that are cut off, have no size, or stand without their heading. Run in the page. */
const unseenValues = (): string[] =>
  [...document.querySelectorAll<HTMLElement>("table.rows")].flatMap((table) => {
    const headings = [...table.querySelectorAll("thead th")];
    return [...table.querySelectorAll("tbody tr")].flatMap((row) => {
      const cells = [...row.querySelectorAll<HTMLElement>("td")];
      return cells.flatMap((cell, at) => {
        const heading = headings[at]?.textContent ?? "";
        if (cell.textContent === "") return [];
        const { width, height, left, right } = cell.getBoundingClientRect();
        const isSeen = width > 0 && height > 0 && left >= 0 && right <= innerWidth + 0.5;
        const isCard = getComputedStyle(cell).display !== "table-cell";
        const label = getComputedStyle(cell, "::before").content;
        // The first cell is the title of its card; what is no text, such as actions, names itself.
        const isNamed =
          !isCard || at === 0 || label.includes(heading.replace(/\s*↓$/, "")) || heading === "Actions";
        return isSeen && isNamed ? [] : [`${heading}: ${cell.textContent}`];
      });
    });
  });

/** Words and ids, outside of code, of which a part stands on the next line. Run in the page. */
const brokenWords = (): string[] => {
  const broken: string[] = [];
  const walker = document.createTreeWalker(
    document.querySelector("main") ?? document.body,
    NodeFilter.SHOW_TEXT,
  );
  for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) {
    const parent = node.parentElement!;
    const isId = parent.matches(".mono, .mono a") && /^[a-z]+_\w{1,32}$/.test(node.textContent!);
    if (!isId && parent.closest(".mono, code, pre, .unseen, script, style, option, h1") !== null) continue;
    for (const match of node.textContent!.matchAll(/[\p{L}\p{N}_]+/gu)) {
      // Ids in a text, and a name longer than the screen is wide.
      if (!isId && (/[\d_]/.test(match[0]) || match[0].length > 24)) continue;
      const range = document.createRange();
      range.setStart(node, match.index);
      range.setEnd(node, match.index + match[0].length);
      const tops = new Set([...range.getClientRects()].map(({ top }) => Math.round(top)));
      if (tops.size > 1) broken.push(match[0]);
    }
  }
  return broken;
};

/** Whether the menu shows where it is, also where it is longer than the window. Run in the page. */
const isLocationShown = (): boolean => {
  const rect = document.querySelector("nav [aria-current]")?.getBoundingClientRect();
  return rect !== undefined && rect.left >= 0 && rect.right <= innerWidth;
};
