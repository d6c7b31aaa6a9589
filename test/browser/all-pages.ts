import { mkdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { open } from "../gateway/open.ts";
import { Visitor } from "./browser.ts";
import { openLargeWorld } from "./large-world.ts";
import { PicturedWorld } from "./pictured-world.ts";

/**
 * Every page of an empty gateway, of one with a week behind it, or with 225 models, 1,000 keys and 100,000 receipts: how
 * long each takes until it shows its data and until a list shows its next page, how much of that the page and this
 * process (the gateway, and what steers the browser) spend CPU, what is wider than the window, and pictures of them, some
 * with a dialog or an answer: `bun run test/browser/all-pages.ts <folder> [empty | small | large] [width…]`.
 * docs/dashboard.png, docs/playground.png and docs/usage.png are the tops of `overview`, `playground` and `admin-usage`
 * at 1280 pixels, small and light.
 */
const [FOLDER = join(tmpdir(), "all-pages"), size = "large", ...widths] = process.argv.slice(2);
const WIDTHS = widths.length === 0 ? [320, 768, 1280] : widths.map(Number);
const MAX_HEIGHT = 2_400;

mkdirSync(FOLDER, { recursive: true });
const { gateway, owner } = await openWorld();
const listOf = async (path: string) =>
  (await gateway.send("GET", path, { bearer: owner.recovery_secret })).json.data;
const [receipt] = await listOf("/v1/receipts?limit=1");
const [key] = await listOf("/v1/keys?limit=1");
const [model] = await listOf("/v1/catalog");

/** `next` is the button that shows more; `act` is done before the picture is taken. */
type Page = readonly [
  name: string,
  path: string,
  next?: RegExp | null,
  act?: (visitor: Visitor) => Promise<unknown>,
];
const receiptPage: Page = ["receipt", `/dashboard#/receipts/${receipt?.id}`];
const PAGES: readonly Page[] = [
  ["overview", "/dashboard#/"],
  ["keys", "/dashboard#/keys", /^Show more/],
  ["key", `/dashboard#/keys/${key.id}`],
  ["key-limits", `/dashboard#/keys/${key.id}`, null, press("Change limits")],
  ["key-rotate", `/dashboard#/keys/${key.id}`, null, press("Rotate")],
  ["budgets", "/dashboard#/budgets"],
  ["receipts", "/dashboard#/receipts", /^Show older/],
  ...(receipt === undefined ? [] : [receiptPage]),
  ["credit", "/dashboard#/credit"],
  ["models", "/dashboard#/models", /^Show more/],
  ["model", `/dashboard#/models/${encodeURIComponent(model.id)}`],
  ["webhooks", "/dashboard#/webhooks"],
  ["playground", "/dashboard#/playground", null, question],
  ["account", "/dashboard#/account"],
  ["admin-overview", "/admin#/"],
  ["admin-requests", "/admin#/requests", /^Show older/],
  ["admin-hosts", "/admin#/hosts", /^Show all/],
  ["admin-balances", "/admin#/balances"],
  ["admin-balance", `/admin#/balances/${owner.balance_id}`, /^Show older/],
  ["admin-key", `/admin#/keys/${key.id}`],
  ["admin-usage", "/admin#/usage"],
  ["admin-books", "/admin#/books"],
  ["admin-config", "/admin#/config"],
  ["admin-payments", "/admin#/payments"],
  ["admin-changes", "/admin#/changes"],
  ["admin-events", "/admin#/events"],
  ["admin-operators", "/admin#/operators"],
  ["admin-add-operator", "/admin#/operators", null, press("Add operator")],
  ["public-models", "/models"],
  ["public-model", `/models/${model.id}`],
  ["status", "/status"],
  ["errors", "/docs/errors"],
];

/** Before anybody has entered. */
const DOORS: readonly Page[] = [
  ["welcome", "/dashboard"],
  ["save-secrets", "/dashboard", null, createKey],
  ["admin-door", "/admin"],
];

// The first visitor of a checkout waits for the bundle, which packages hold ready.
await (await fetch(`${gateway.url}/dashboard`)).text();

for (const width of WIDTHS) {
  for (const colorScheme of ["light", "dark"] as const) {
    for (const [pages, secret] of [
      [DOORS, null],
      [PAGES, owner.recovery_secret],
    ] as const) {
      const visitor = await Visitor.arrive(gateway.url, { width, colorScheme });
      if (secret !== null) await visitor.enter(secret);
      for (const page of pages) await show(visitor, `${width}-${colorScheme}`, page);
      for (const complaint of visitor.complaints) console.log(complaint);
      await visitor.context.close();
    }
  }
}
process.exit(0);

async function openWorld() {
  if (size === "empty") {
    const gateway = await open("catalog: public\n");
    return { gateway, owner: await gateway.key(0) };
  }
  if (size === "small") return PicturedWorld.make();
  const world = await openLargeWorld();
  for (let request = 0; request < 4; request++)
    await world.gateway.chat(world.owner.key, { model: "aurora/model-0" });
  return world;
}

/** Opens a dialog. */
function press(name: string) {
  return (visitor: Visitor) => visitor.button(name).click();
}

async function createKey(visitor: Visitor): Promise<void> {
  await visitor.button("Create my key").click();
  await visitor.heading("Save both secrets now").waitFor();
}

/** A question of somebody who has just pasted the key. */
async function question(visitor: Visitor): Promise<void> {
  await visitor.field("API key").fill(owner.key);
  await visitor.button("Use it").click();
  await visitor.field("Message").fill("When is the tide highest, and how do I estimate its height?");
  await visitor.page.keyboard.press("Enter");
  await visitor.link("Receipt of this answer").or(visitor.page.getByRole("alert")).first().waitFor();
}

async function show(visitor: Visitor, appearance: string, [what, path, next, act]: Page): Promise<void> {
  const { page } = visitor;
  const name = `${what}-${appearance}`;
  await page.goto("about:blank");
  const session = await page.context().newCDPSession(page);
  await session.send("Performance.enable", { timeDomain: "threadTicks" });
  const before = process.cpuUsage();
  const began = performance.now();
  await page.goto(gateway.url + path);
  await page.waitForFunction(isThere);
  const shown = performance.now() - began;
  const { user, system } = process.cpuUsage(before);
  const { metrics } = await session.send("Performance.getMetrics");
  const tasks = 1_000 * metrics.find(({ name }) => name === "TaskDuration")!.value;
  await session.detach();
  await act?.(visitor);
  const height = await page.evaluate(() => document.documentElement.scrollHeight);
  const size = page.viewportSize()!;
  await page.setViewportSize({ ...size, height: Math.min(Math.max(height, 600), MAX_HEIGHT) });
  await page.screenshot({ path: join(FOLDER, `${name}.png`) });
  await page.setViewportSize(size);
  const more = next == null ? null : await nextMs({ page }, next);
  const wide = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
  console.log(
    `${name.padEnd(32)} shown ${shown.toFixed(0).padStart(5)} ms (CPU: page ${tasks.toFixed(0)}, gateway ${((user + system) / 1_000).toFixed(0)}), ${String(height).padStart(6)} px${more === null ? "" : `, next ${more.toFixed(0)} ms`}${wide ? ", wider than the window" : ""}`,
  );
}

/** In the page itself, from the click to the rows. */
async function nextMs({ page }: Pick<Visitor, "page">, next: RegExp): Promise<number | null> {
  return page.evaluate(async (pattern) => {
    const button = [...document.querySelectorAll("button")].find((one) =>
      new RegExp(pattern).test(one.textContent ?? ""),
    );
    if (button === undefined) return null;
    const rows = () => document.querySelectorAll("tbody tr").length;
    const before = rows();
    const began = performance.now();
    button.click();
    while (rows() === before) await new Promise((resolve) => setTimeout(resolve, 1));
    return performance.now() - began;
  }, next.source);
}

/** The page, with its data. Run in the page. */
function isThere(): boolean {
  return document.querySelector("h1") !== null && document.querySelector(".waiting") === null;
}
