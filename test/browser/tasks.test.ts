import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Browser } from "playwright-core";
import { ADMIN } from "../process/gateway.ts";
import { browserMissing, endVisits, launch, Visitor } from "./browser.ts";
import { openLargeWorld } from "./large-world.ts";

type World = Awaited<ReturnType<typeof openLargeWorld>>;

/** A person's way to an answer or a deed: each click and each choice counts, and what is typed in between does not. */
class Clicks {
  count = 0;
  constructor(readonly visitor: Visitor) {}

  link(name: string | RegExp) {
    this.count += 1;
    return this.visitor.link(name).click();
  }

  /** In the dialog, where one is open. */
  async press(name: string | RegExp) {
    this.count += 1;
    const dialog = this.visitor.page.getByRole("dialog");
    const target = (await dialog.isVisible()) ? dialog : this.visitor.page;
    await target
      .getByRole("button", { name, exact: typeof name === "string" })
      .first()
      .click();
  }

  choose(label: string, value: string) {
    this.count += 1;
    return this.visitor.field(label).selectOption(value);
  }

  period(name: string) {
    this.count += 1;
    return this.visitor.page.getByText(name, { exact: true }).click();
  }

  first() {
    this.count += 1;
    return this.rows.first().getByRole("link").first().click();
  }

  /** In the first row. */
  async pressInFirst(name: RegExp) {
    this.count += 1;
    await this.rows.first().getByRole("button", { name }).click();
  }

  fill(label: string, text: string) {
    return this.visitor.field(label).fill(text);
  }

  shows(text: string | RegExp) {
    return this.visitor.page.getByText(text).first().waitFor();
  }

  get rows() {
    return this.visitor.page.locator("tbody tr");
  }
}

const MAX_CLICKS = 4;

describe.skipIf(browserMissing)("with 225 models, 1,000 keys and 100,000 receipts", () => {
  let browser: Browser;
  let world: World;

  beforeAll(async () => {
    world = await openLargeWorld();
    // Nobody listens at its hosts.
    for (let request = 0; request < 4; request++) {
      await world.gateway.chat(world.owner.key, { model: "aurora/model-0", max_tokens: 10 });
    }
    browser = await launch();
  }, 120_000);
  afterAll(async () => {
    await endVisits(browser);
    await world?.gateway.close();
  });

  /**
   * With the clicks that each takes, and those that it took before the pages could search, filter and sort, with the same
   * keys and receipts (at noon, where yesterday's begin further down); null: no way led there.
   */
  const OWNER: [
    task: string,
    takes: number,
    took: number | null,
    way: (clicks: Clicks) => Promise<unknown>,
  ][] = [
    [
      "which key spent most yesterday, and stop it",
      4,
      null,
      async (clicks) => {
        await clicks.link("Keys");
        await clicks.choose("Spend", "yesterday");
        await clicks.visitor.page
          .locator("th", { hasText: "Yesterday (UTC)" })
          .waitFor({ state: "attached" });
        await clicks.pressInFirst(/^Revoke/);
        await clicks.press("Revoke now");
        await clicks.visitor.page.getByRole("dialog").waitFor({ state: "detached" });
      },
    ],
    [
      "why did yesterday's request fail",
      4,
      8,
      async (clicks) => {
        await clicks.link("Receipts");
        await clicks.choose("Time", "yesterday");
        await clicks.choose("Outcome", "failed");
        await clicks.shows("upstream error");
        await clicks.first();
        await clicks.shows("The host failed after streaming began");
      },
    ],
    [
      "what became of the request whose receipt a program logged",
      2,
      null,
      async (clicks) => {
        const { json } = await world.gateway.send("GET", "/v1/receipts?limit=1", {
          bearer: world.owner.recovery_secret,
        });
        await clicks.link("Receipts");
        await clicks.fill("Receipt id", json.data[0].id);
        await clicks.press("Open");
        await clicks.visitor.heading("Attempts").waitFor();
      },
    ],
    [
      "the most expensive of one key's latest requests at one host",
      2,
      null,
      async (clicks) => {
        await clicks.link("Receipts");
        await clicks.fill("Key", "key-0031");
        await clicks.fill("Host", "lagoon");
        await clicks.rows.first().waitFor();
        await clicks.press(/^Cost/);
        await clicks.visitor.page.locator("th[aria-sort=descending]").waitFor({ state: "attached" });
      },
    ],
    [
      "yesterday's receipts as a file for a spreadsheet",
      3,
      null,
      async (clicks) => {
        await clicks.link("Receipts");
        await clicks.choose("Time", "yesterday");
        await clicks.rows.first().waitFor();
        clicks.count += 1;
        const file = await clicks.visitor.saved("Export CSV of these receipts", /\.csv$/);
        expect(file.split("\n").length).toBeGreaterThan(5_000);
      },
    ],
    [
      "a key by its name, and a cap of $2 a day on it",
      4,
      6,
      async (clicks) => {
        await clicks.link("Keys");
        await clicks.fill("Search", "key-0777");
        await clicks.link("key-0777");
        await clicks.press("Change limits");
        await clicks.fill("Dollars per day", "2");
        await clicks.press("Save");
        await clicks.shows(/of \$2\.00/);
      },
    ],
    [
      "replace a key that was lost, at once",
      4,
      10,
      async (clicks) => {
        await clicks.link("Keys");
        await clicks.fill("Search", `key-0${clicks.visitor.page.viewportSize()!.width < 400 ? 401 : 402}`);
        await clicks.first();
        await clicks.press("Rotate");
        await clicks.press("Rotate");
        await clicks.visitor.heading("Save the new key now").waitFor();
      },
    ],
    [
      "a budget of $50 a month",
      3,
      3,
      async (clicks) => {
        await clicks.link("Budgets");
        await clicks.press("New budget");
        await clicks.fill("Name", `team-${clicks.visitor.page.viewportSize()!.width}`);
        await clicks.fill("Cap in dollars", "50");
        await clicks.press("Create");
        await clicks.visitor
          .heading(/^team-/)
          .first()
          .waitFor();
      },
    ],
    [
      "at most $1 a day for each end user",
      4,
      null,
      async (clicks) => {
        await clicks.link("Budgets");
        await clicks.press("New budget");
        await clicks.fill("Name", `each-${clicks.visitor.page.viewportSize()!.width}`);
        await clicks.fill("Cap in dollars", "1");
        await clicks.choose("Window", "day");
        await clicks.fill("For each value of the tag", "user");
        await clicks.press("Create");
        await clicks.shows("per day, for each user");
      },
    ],
    [
      "have events sent to a program",
      3,
      null,
      async (clicks) => {
        await clicks.link("Webhooks");
        await clicks.press("New webhook");
        await clicks.fill("Address", "https://hooks.example.com/events");
        await clicks.fill("Events", "claim.undone");
        await clicks.press("Create");
        await clicks.visitor.heading("Save the secret now").waitFor();
      },
    ],
    [
      "the cheapest model with tools and a context of 200k",
      4,
      null,
      async (clicks) => {
        await clicks.link("Models");
        await clicks.choose("Context at least", "200000");
        await clicks.choose("Can", "tools");
        await clicks.press(/^Input/);
        await clicks.visitor.page.locator("th[aria-sort=descending]").waitFor({ state: "attached" });
      },
    ],
    [
      "a call of a model, ready to be copied",
      3,
      null,
      async (clicks) => {
        await clicks.link("Models");
        await clicks.fill("Search", "model-123");
        await clicks.link("Model 123");
        await clicks.shows('"model": "granite/model-123"');
        await clicks.press(/^Copy the example/);
      },
    ],
    [
      "which key caused yesterday's spend, over the hours",
      2,
      null,
      async (clicks) => {
        await clicks.period("Yesterday");
        await clicks.choose("By", "key");
        await clicks.shows(/^key-0/);
      },
    ],
  ];
  const OPERATOR: typeof OWNER = [
    [
      "which host is down, since when and why",
      1,
      null,
      async (clicks) => {
        await clicks.link("Hosts");
        await clicks.shows(/^failing since /);
        await clicks.shows(/failed, last .*: /);
      },
    ],
    [
      "why did everybody's latest request fail",
      1,
      null,
      async (clicks) => {
        await clicks.visitor.heading("Latest failures").waitFor();
        await clicks.first();
        await clicks.shows("Every host of the model failed");
      },
    ],
    [
      "which key of all customers spent most yesterday, and stop it",
      4,
      null,
      async (clicks) => {
        await clicks.link("Usage");
        await clicks.period("Yesterday");
        await clicks.shows("vs. the day before");
        clicks.count += 1;
        const keys = clicks.visitor.page.getByRole("region", { name: "Keys" });
        await keys
          .getByRole("button", { name: /^Revoke/ })
          .first()
          .click();
        await clicks.press("Revoke now");
        await keys.getByText("revoked").waitFor();
      },
    ],
    [
      "everybody's failed requests of the last hour",
      3,
      null,
      async (clicks) => {
        await clicks.link("Requests");
        await clicks.choose("Time", "hour");
        await clicks.choose("Outcome", "failed");
        await clicks.rows.first().waitFor();
      },
    ],
    [
      "how one model does at its host",
      1,
      0,
      async (clicks) => {
        await clicks.link("Hosts");
        await clicks.fill("Search", "model-200");
        await clicks.shows("m200");
      },
    ],
    [
      "balances that run out",
      1,
      null,
      async (clicks) => {
        await clicks.link("Balances");
        await clicks.fill("Less than … available", "5");
        await clicks.visitor.heading("No balance matches").waitFor();
      },
    ],
    [
      "whose key this is, which leaked, and stop it",
      3,
      4,
      async (clicks) => {
        const leaked = await world.gateway.admin(`/admin/balances/${world.owner.balance_id}/keys`, {});
        await clicks.fill("Find", leaked.json.key);
        await clicks.press("Open");
        await clicks.shows(world.owner.balance_id);
        await clicks.press("Revoke");
        await clicks.press("Revoke now");
        await clicks.shows(/^revoked$/);
      },
    ],
    [
      "a second key for a customer",
      3,
      null,
      async (clicks) => {
        await clicks.fill("Find", world.owner.balance_id);
        await clicks.press("Open");
        await clicks.press("New key");
        await clicks.press("Create key");
        await clicks.visitor.heading("Save the new key now").waitFor();
      },
    ],
    [
      "$25 for a customer who has paid an invoice",
      3,
      4,
      async (clicks) => {
        await clicks.fill("Find", world.owner.balance_id);
        await clicks.press("Open");
        await clicks.press("Add credit");
        await clicks.fill("Amount in dollars", "25");
        await clicks.fill("Note", "Invoice 1041");
        await clicks.press("Add credit");
        await clicks.shows("Invoice 1041");
      },
    ],
    [
      "a customer's own prices",
      4,
      null,
      async (clicks) => {
        await clicks.fill("Find", world.owner.balance_id);
        await clicks.press("Open");
        await clicks.press("Price list");
        await clicks.choose("Charged by", "partners");
        await clicks.press("Save");
        await clicks.visitor.page.getByRole("dialog").waitFor({ state: "detached" });
        await clicks.shows("partners");
      },
    ],
  ];

  for (const width of [1280, 320]) {
    for (const [at, tasks] of [
      ["/dashboard", OWNER],
      ["/admin", OPERATOR],
    ] as const) {
      test.each(tasks)(
        `at ${width} pixels, %s: %d clicks (once %p)`,
        async (_task, takes, _took, way) => {
          const visitor = await Visitor.arrive(browser, world.gateway.url, { width });
          await visitor.context.grantPermissions(["clipboard-write"]);
          await visitor.page.addInitScript(
            ([recovery, admin]) => {
              sessionStorage.setItem("gateway-recovery", recovery!);
              sessionStorage.setItem("gateway-admin", admin!);
            },
            [world.owner.recovery_secret, ADMIN],
          );
          await visitor.goto(at);
          await visitor.heading("Overview").waitFor();
          const clicks = new Clicks(visitor);
          await way(clicks);
          expect(clicks.count).toBe(takes);
          expect(takes).toBeLessThanOrEqual(MAX_CLICKS);
          expect(visitor.complaints).toEqual([]);
          await visitor.context.close();
        },
        120_000,
      );
    }
  }
});
