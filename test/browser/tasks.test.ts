import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { browserMissing, endVisits, Visitor } from "./browser.ts";
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

type Way = (clicks: Clicks) => Promise<unknown>;

/** With the clicks that it takes. */
const task = (name: string, takes: number, way: Way) => [name, takes, way] as const;

describe.skipIf(browserMissing)("with 225 models, 1,000 keys and 20,000 receipts", () => {
  let world: World;

  beforeAll(async () => {
    world = await openLargeWorld({ receipts: 20_000 });
    // Nobody listens at its hosts.
    for (let request = 0; request < 4; request++) {
      await world.gateway.chat(world.owner.key, { model: "aurora/model-0", max_tokens: 10 });
    }
  }, 120_000);
  afterAll(async () => {
    await endVisits();
    await world?.gateway.close();
  });

  const OWNER = [
    task("which key spent most yesterday, and stop it", 4, async (clicks) => {
      await clicks.link("Keys");
      await clicks.choose("Spend", "yesterday");
      await clicks.visitor.page.locator("th", { hasText: "Yesterday (UTC)" }).waitFor({ state: "attached" });
      await clicks.pressInFirst(/^Revoke/);
      await clicks.press("Revoke now");
      await clicks.visitor.page.getByRole("dialog").waitFor({ state: "detached" });
    }),
    task("why did yesterday's request fail", 4, async (clicks) => {
      await clicks.link("Receipts");
      await clicks.choose("Time", "yesterday");
      await clicks.choose("Outcome", "failed");
      await clicks.shows("upstream error");
      await clicks.first();
      await clicks.shows("The host failed after streaming began");
    }),
    task("what became of the request whose receipt a program logged", 2, async (clicks) => {
      const { json } = await world.gateway.send("GET", "/v1/receipts?limit=1", {
        bearer: world.owner.recovery_secret,
      });
      await clicks.link("Receipts");
      await clicks.fill("Receipt id", json.data[0].id);
      await clicks.press("Open");
      await clicks.visitor.heading("Attempts").waitFor();
    }),
    task("the most expensive of one key's latest requests at one host", 2, async (clicks) => {
      await clicks.link("Receipts");
      await clicks.fill("Key", "key-0031");
      await clicks.fill("Host", "lagoon");
      await clicks.rows.first().waitFor();
      await clicks.press(/^Cost/);
      await clicks.visitor.page.locator("th[aria-sort=descending]").waitFor({ state: "attached" });
    }),
    task("yesterday's receipts as a file for a spreadsheet", 3, async (clicks) => {
      await clicks.link("Receipts");
      await clicks.choose("Time", "yesterday");
      await clicks.rows.first().waitFor();
      clicks.count += 1;
      const file = await clicks.visitor.saved("Export CSV of these receipts", /\.csv$/);
      expect(file.split("\n").length).toBeGreaterThan(1_000);
    }),
    task("a key by its name, and a cap of $2 a day on it", 4, async (clicks) => {
      await clicks.link("Keys");
      await clicks.fill("Search", "key-0777");
      await clicks.link("key-0777");
      await clicks.press("Change limits");
      await clicks.fill("Dollars per day", "2");
      await clicks.press("Save");
      await clicks.shows(/of \$2\.00/);
    }),
    task("replace a key that was lost, at once", 4, async (clicks) => {
      await clicks.link("Keys");
      await clicks.fill("Search", `key-0${clicks.visitor.page.viewportSize()!.width < 400 ? 401 : 402}`);
      await clicks.first();
      await clicks.press("Rotate");
      await clicks.press("Rotate");
      await clicks.visitor.heading("Save the new key now").waitFor();
    }),
    task("a budget of $50 a month", 3, async (clicks) => {
      await clicks.link("Budgets");
      await clicks.press("New budget");
      await clicks.fill("Name", `team-${clicks.visitor.page.viewportSize()!.width}`);
      await clicks.fill("Cap in dollars", "50");
      await clicks.press("Create");
      await clicks.visitor
        .heading(/^team-/)
        .first()
        .waitFor();
    }),
    task("at most $1 a day for each end user", 4, async (clicks) => {
      await clicks.link("Budgets");
      await clicks.press("New budget");
      await clicks.fill("Name", `each-${clicks.visitor.page.viewportSize()!.width}`);
      await clicks.fill("Cap in dollars", "1");
      await clicks.choose("Window", "day");
      await clicks.fill("For each value of the tag", "user");
      await clicks.press("Create");
      await clicks.shows("per day, for each user");
    }),
    task("have events sent to a program", 3, async (clicks) => {
      await clicks.link("Webhooks");
      await clicks.press("New webhook");
      await clicks.fill("Address", "https://hooks.example.com/events");
      await clicks.fill("Events", "claim.undone");
      await clicks.press("Create");
      await clicks.visitor.heading("Save the secret now").waitFor();
    }),
    task("the cheapest model with tools and a context of 200k", 4, async (clicks) => {
      await clicks.link("Models");
      await clicks.choose("Context at least", "200000");
      await clicks.choose("Can", "tools");
      await clicks.press(/^Input/);
      await clicks.visitor.page.locator("th[aria-sort=descending]").waitFor({ state: "attached" });
    }),
    task("a call of a model, ready to be copied", 3, async (clicks) => {
      await clicks.link("Models");
      await clicks.fill("Search", "model-123");
      await clicks.link("Model 123");
      await clicks.shows('"model": "granite/model-123"');
      await clicks.press(/^Copy the example/);
    }),
    task("which key caused yesterday's spend, over the hours", 2, async (clicks) => {
      await clicks.period("Yesterday");
      await clicks.choose("By", "key");
      await clicks.shows(/^key-0/);
    }),
  ];
  const OPERATOR = [
    task("which host is down, since when and why", 1, async (clicks) => {
      await clicks.link("Hosts");
      await clicks.shows(/^failing since /);
      await clicks.shows(/failed, last .*: /);
    }),
    task("why did everybody's latest request fail", 1, async (clicks) => {
      await clicks.visitor.heading("Latest failures").waitFor();
      await clicks.first();
      await clicks.shows("Every host of the model failed");
    }),
    task("which key of all customers spent most yesterday, and stop it", 4, async (clicks) => {
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
    }),
    task("everybody's failed requests of the last hour", 3, async (clicks) => {
      await clicks.link("Requests");
      await clicks.choose("Time", "hour");
      await clicks.choose("Outcome", "failed");
      await clicks.rows.first().waitFor();
    }),
    task("how one model does at its host", 1, async (clicks) => {
      await clicks.link("Hosts");
      await clicks.fill("Search", "model-200");
      await clicks.shows("m200");
    }),
    task("balances that run out", 1, async (clicks) => {
      await clicks.link("Balances");
      await clicks.fill("Less than … available", "5");
      await clicks.visitor.heading("No balance matches").waitFor();
    }),
    task("whose key this is, which leaked, and stop it", 3, async (clicks) => {
      const leaked = await world.gateway.admin(`/admin/balances/${world.owner.balance_id}/keys`, {});
      await clicks.fill("Find", leaked.json.key);
      await clicks.press("Open");
      await clicks.shows(world.owner.balance_id);
      await clicks.press("Revoke");
      await clicks.press("Revoke now");
      await clicks.shows(/^revoked$/);
    }),
    task("a second key for a customer", 3, async (clicks) => {
      await clicks.fill("Find", world.owner.balance_id);
      await clicks.press("Open");
      await clicks.press("New key");
      await clicks.press("Create key");
      await clicks.visitor.heading("Save the new key now").waitFor();
    }),
    task("$25 for a customer who has paid an invoice", 3, async (clicks) => {
      await clicks.fill("Find", world.owner.balance_id);
      await clicks.press("Open");
      await clicks.press("Add credit");
      await clicks.fill("Amount in dollars", "25");
      await clicks.fill("Note", "Invoice 1041");
      await clicks.press("Add credit");
      await clicks.shows("Invoice 1041");
    }),
    task("a customer's own prices", 4, async (clicks) => {
      await clicks.fill("Find", world.owner.balance_id);
      await clicks.press("Open");
      await clicks.press("Price list");
      await clicks.choose("Charged by", "partners");
      await clicks.press("Save");
      await clicks.visitor.page.getByRole("dialog").waitFor({ state: "detached" });
      await clicks.shows("partners");
    }),
  ];

  describe.each([1280, 320])("at %d pixels", (width) => {
    let visitor: Visitor;
    beforeAll(async () => {
      visitor = await Visitor.arrive(world.gateway.url, { width });
      await visitor.context.grantPermissions(["clipboard-write"]);
      await visitor.enter(world.owner.recovery_secret);
    });

    for (const [at, tasks] of [
      ["/dashboard", OWNER],
      ["/admin", OPERATOR],
    ] as const) {
      test.each(tasks)(
        "%s: %d clicks",
        async (_task, takes, way) => {
          await visitor.goto(at);
          await visitor.heading("Overview").waitFor();
          const clicks = new Clicks(visitor);
          await way(clicks);
          expect(clicks.count).toBe(takes);
          expect(takes).toBeLessThanOrEqual(MAX_CLICKS);
        },
        120_000,
      );
    }
  });
});
