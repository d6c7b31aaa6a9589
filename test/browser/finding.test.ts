import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Browser } from "playwright-core";
import { ADMIN } from "../process/gateway.ts";
import { browserMissing, endVisits, launch, Visitor } from "./browser.ts";
import { openLargeWorld } from "./large-world.ts";

type World = Awaited<ReturnType<typeof openLargeWorld>>;

/** A person's way to an answer: each click, choice and field that is filled in is a step. */
class Steps {
  taken = 0;
  constructor(readonly visitor: Visitor) {}

  link(name: string | RegExp) {
    this.taken += 1;
    return this.visitor.link(name).click();
  }

  press(name: string | RegExp) {
    this.taken += 1;
    return this.visitor.button(name).first().click();
  }

  choose(label: string, value: string) {
    this.taken += 1;
    return this.visitor.field(label).selectOption(value);
  }

  fill(label: string, text: string) {
    this.taken += 1;
    return this.visitor.field(label).fill(text);
  }
}

const MAX_STEPS = 4;

describe.skipIf(browserMissing)("with 225 models, 1,000 keys and 100,000 receipts", () => {
  let browser: Browser;
  let world: World;

  beforeAll(async () => {
    world = await openLargeWorld();
    browser = await launch();
  }, 120_000);
  afterAll(async () => {
    await endVisits(browser);
    await world?.gateway.close();
  });

  const rows = (visitor: Visitor) => visitor.page.locator("tbody tr");
  const OWNER: [task: string, way: (steps: Steps) => Promise<unknown>][] = [
    [
      "what failed yesterday, and why",
      async (steps) => {
        await steps.link("Receipts");
        await steps.choose("Time", "yesterday");
        await steps.choose("Outcome", "failed");
        await steps.visitor.page.getByText("upstream error").first().waitFor();
      },
    ],
    [
      "the receipt whose id a program logged",
      async (steps) => {
        const { json } = await world.gateway.send("GET", "/v1/receipts?limit=1", {
          bearer: world.owner.recovery_secret,
        });
        await steps.link("Receipts");
        await steps.fill("Receipt id", json.data[0].id);
        await steps.press("Open");
        await steps.visitor.heading("Attempts").waitFor();
      },
    ],
    [
      "the requests of one key at one host",
      async (steps) => {
        await steps.link("Receipts");
        await steps.fill("Key", "key-0031");
        await steps.fill("Host", "lagoon");
        await rows(steps.visitor).first().waitFor();
      },
    ],
    [
      "the most expensive of the latest requests",
      async (steps) => {
        await steps.link("Receipts");
        await rows(steps.visitor).first().waitFor();
        await steps.press(/^Cost/);
        await steps.visitor.page.locator("th[aria-sort=descending]").waitFor();
      },
    ],
    [
      "the key that spent most, to stop it",
      async (steps) => {
        await steps.link("Keys");
        await rows(steps.visitor).first().waitFor();
        await steps.press(/^30 days/);
        await steps.visitor.page.locator("th[aria-sort=descending]").waitFor();
        steps.taken += 1;
        await rows(steps.visitor).first().getByRole("link").click();
        await steps.press("Revoke");
        await steps.visitor.button("Keep it").click();
      },
    ],
    [
      "a key by its name",
      async (steps) => {
        await steps.link("Keys");
        await steps.fill("Search", "key-0777");
        await steps.link("key-0777");
        await steps.visitor.heading("key-0777").waitFor();
      },
    ],
    [
      "the cheapest model with tools and 200k",
      async (steps) => {
        await steps.link("Models");
        await steps.choose("Context at least", "200000");
        await steps.choose("Can", "tools");
        await steps.press(/^Input/);
        await rows(steps.visitor).first().waitFor();
      },
    ],
    [
      "a call of a model, ready to be copied",
      async (steps) => {
        await steps.link("Models");
        await steps.fill("Search", "model-123");
        await steps.link("Model 123");
        await steps.visitor.page.getByText('"model": "granite/model-123"').waitFor();
        await steps.press(/^Copy/);
      },
    ],
    [
      "who caused the spend of the last hours",
      async (steps) => {
        await steps.link("Overview");
        await steps.choose("By", "key");
        await steps.visitor.page.getByText("key-0", { exact: false }).first().waitFor();
      },
    ],
  ];
  const OPERATOR: typeof OWNER = [
    ["what fails now", (steps) => steps.visitor.heading("Latest failures").waitFor()],
    [
      "everybody's failed requests at no host of the last hour",
      async (steps) => {
        await steps.link("Requests");
        await steps.choose("Time", "hour");
        await steps.choose("Outcome", "failed");
        await rows(steps.visitor).first().waitFor();
      },
    ],
    [
      "how one model does at its host",
      async (steps) => {
        await steps.link("Hosts");
        await steps.fill("Search", "model-200");
        await steps.visitor.page.getByText("m200").waitFor();
      },
    ],
    [
      "balances that run out",
      async (steps) => {
        await steps.link("Balances");
        await steps.fill("Less than … available", "5");
        await steps.visitor.heading("No balance matches").waitFor();
      },
    ],
    [
      "whose key this is, which leaked",
      async (steps) => {
        await steps.link("Balances");
        await steps.fill("Find", world.owner.key);
        await steps.press("Open");
        await steps.visitor.page.getByText(world.owner.balance_id).first().waitFor();
      },
    ],
    [
      "another key for a customer",
      async (steps) => {
        await steps.link("Balances");
        await steps.link(world.owner.balance_id);
        await steps.press("New key");
        await steps.press("Create key");
        await steps.visitor.heading("Save the new key now").waitFor();
      },
    ],
  ];

  for (const width of [1280, 320]) {
    for (const [at, tasks] of [
      ["/dashboard", OWNER],
      ["/admin", OPERATOR],
    ] as const) {
      test.each(tasks)(
        `at ${width} pixels, %s takes ${MAX_STEPS} steps at most`,
        async (_task, way) => {
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
          const steps = new Steps(visitor);
          await way(steps);
          expect(steps.taken).toBeLessThanOrEqual(MAX_STEPS);
          expect(visitor.complaints).toEqual([]);
          await visitor.context.close();
        },
        120_000,
      );
    }
  }
});
