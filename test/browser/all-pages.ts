import { mkdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { open } from "../gateway/open.ts";
import { ADMIN } from "../process/gateway.ts";
import { launch, Visitor } from "./browser.ts";
import { openLargeWorld } from "./large-world.ts";
import { PicturedWorld } from "./pictured-world.ts";

/**
 * Every page of an empty gateway, of one with a week behind it, or with 225 models, 1,000 keys and 100,000 receipts: how
 * long each takes until it shows its data and until a list shows its next page, how much of that the page and this
 * process (the gateway, and what steers the browser) spend CPU, what is wider than the window, and pictures of them: `bun run test/browser/all-pages.ts <folder> [empty | small | large] [width…]`.
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
const browser = await launch();

type Page = readonly [name: string, path: string, next?: RegExp];
const receiptPage: Page = ["receipt", `/dashboard#/receipts/${receipt?.id}`];
const PAGES: readonly Page[] = [
  ["overview", "/dashboard#/"],
  ["keys", "/dashboard#/keys", /^Show more/],
  ["key", `/dashboard#/keys/${key.id}`],
  ["budgets", "/dashboard#/budgets"],
  ["receipts", "/dashboard#/receipts", /^Show older/],
  ...(receipt === undefined ? [] : [receiptPage]),
  ["credit", "/dashboard#/credit"],
  ["models", "/dashboard#/models", /^Show more/],
  ["model", `/dashboard#/models/${encodeURIComponent(model.id)}`],
  ["webhooks", "/dashboard#/webhooks"],
  ["playground", "/dashboard#/playground"],
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
  ["public-models", "/models"],
  ["public-model", `/models/${model.id}`],
  ["status", "/status"],
  ["errors", "/docs/errors"],
];

// The first visitor of a checkout waits for the bundle, which packages hold ready.
await (await fetch(`${gateway.url}/dashboard`)).text();

for (const width of WIDTHS) {
  for (const colorScheme of ["light", "dark"] as const) {
    const visitor = await Visitor.arrive(browser, gateway.url, { width, colorScheme });
    await visitor.page.addInitScript(
      ([recovery, admin]) => {
        if (location.protocol === "about:") return;
        sessionStorage.setItem("gateway-recovery", recovery!);
        sessionStorage.setItem("gateway-admin", admin!);
      },
      [owner.recovery_secret, ADMIN],
    );
    for (const [name, path, next] of PAGES)
      await show(visitor, `${name}-${width}-${colorScheme}`, path, next);
    for (const complaint of visitor.complaints) console.log(complaint);
    await visitor.context.close();
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

async function show({ page }: Visitor, name: string, path: string, next?: RegExp): Promise<void> {
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
  const height = await page.evaluate(() => document.documentElement.scrollHeight);
  const size = page.viewportSize()!;
  await page.setViewportSize({ ...size, height: Math.min(Math.max(height, 600), MAX_HEIGHT) });
  await page.screenshot({ path: join(FOLDER, `${name}.png`) });
  await page.setViewportSize(size);
  const more = next === undefined ? null : await nextMs({ page }, next);
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
