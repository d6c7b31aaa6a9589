import { mkdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { ADMIN } from "../process/gateway.ts";
import { type Appearance, launch, Visitor } from "./browser.ts";
import { PicturedWorld } from "./pictured-world.ts";

/**
 * Pictures of every page in light, dark and on a phone, for people to look at: `bun run
 * test/browser/screenshots.ts <folder> [light | dark | phone]`. docs/dashboard.png, docs/playground.png
 * and docs/usage.png are the tops of `overview-light`, `playground-light` and `admin-usage-light`.
 */
const [FOLDER = join(tmpdir(), "gateway-screenshots"), only] = process.argv.slice(2);

const APPEARANCES: Record<string, Appearance> = {
  light: { colorScheme: "light" },
  dark: { colorScheme: "dark" },
  phone: { colorScheme: "light", width: 390, height: 844 },
};

/** Taller pages are cut: the top shows what matters. */
const TALLEST = 1_300;

mkdirSync(FOLDER, { recursive: true });
const world = await PicturedWorld.make();
const browser = await launch();
for (const [name, theme] of Object.entries(APPEARANCES)) {
  if (only === undefined || only === name) await picture(browser, name, theme);
}
await browser.close();
await world.close();
console.log(FOLDER);
process.exit(0);

async function picture(browser: Browser, name: string, theme: Appearance): Promise<void> {
  const visitor = await Visitor.arrive(browser, world.gateway.url, theme);
  const shoot = shootWith(visitor, name, theme);
  await visitor.goto("/dashboard");
  await shoot("welcome");
  await visitor.button("Create my key").click();
  await visitor.field("I saved the API key").check();
  await shoot("save-secrets");

  const owner = await Visitor.arrive(browser, world.gateway.url, theme);
  await pictureOwner(owner, shootWith(owner, name, theme));
  await picturePublic(owner, shootWith(owner, name, theme));
  await pictureOperator(owner, shootWith(owner, name, theme));
}

function shootWith({ page }: Visitor, name: string, theme: Appearance) {
  return async (what: string) => {
    await page.waitForLoadState("networkidle");
    await page.mouse.move(0, 0);
    const size = page.viewportSize()!;
    const whole = await page.evaluate(() => document.documentElement.scrollHeight);
    await page.setViewportSize({ ...size, height: Math.min(Math.max(whole, theme.height ?? 800), TALLEST) });
    await page.screenshot({ path: join(FOLDER, `${what}-${name}.png`) });
    await page.setViewportSize(size);
  };
}

async function pictureOwner(owner: Visitor, shoot: (what: string) => Promise<void>): Promise<void> {
  await owner.recover(world.owner.recovery_secret);
  await owner.heading("Latest requests").waitFor();
  await shoot("overview");
  await owner.link("Keys").click();
  await owner.link("support-agent").waitFor();
  await shoot("keys");
  await owner.link("support-agent").click();
  await owner.heading("Spend").waitFor();
  await shoot("key");
  await owner.button("Change limits").click();
  await shoot("key-limits");
  await owner.page.keyboard.press("Escape");
  await owner.button("Rotate").click();
  await shoot("key-rotate");
  await owner.page.keyboard.press("Escape");
  await owner.link("Budgets").click();
  await owner.heading("research").waitFor();
  await shoot("budgets");
  await owner.link("Receipts").click();
  await owner.page.locator("tbody tr").first().waitFor();
  await owner.field("Model").fill("basalt/code-2");
  await owner.page.getByText("basalt/code-2").first().waitFor();
  await shoot("receipts");
  // One that another host had to take over: how far back it lies depends on the hour at which the pictures
  // are taken.
  const takenOver = owner.page.locator("tr", { hasText: "harbour" }).first();
  while (!(await takenOver.isVisible())) await owner.button("Show older").click();
  await takenOver.getByRole("link").first().click();
  await owner.heading("Attempts").waitFor();
  await shoot("receipt");
  await owner.link("Credit").click();
  await owner.page.getByText("Invoice 1041").waitFor();
  await shoot("credit");
  await owner.link("Models").click();
  await owner.page.getByText("aurora/swift").waitFor();
  await shoot("models");
  await owner.link("Account").click();
  await owner.button("Claim by email").waitFor();
  await shoot("account");
  await owner.link("Playground").click();
  await owner.field("API key").fill(world.owner.key);
  await owner.button("Use it").click();
  await owner.field("Model").selectOption("aurora/grand");
  await owner.field("Message").fill("When is the tide highest, and how do I estimate its height?");
  await owner.page.keyboard.press("Enter");
  await owner.link("Receipt of this answer").waitFor();
  await shoot("playground");
}

async function picturePublic(visitor: Visitor, shoot: (what: string) => Promise<void>): Promise<void> {
  await visitor.goto("/status");
  await shoot("status");
  await visitor.goto("/docs/errors");
  await shoot("errors");
}

async function pictureOperator(operator: Visitor, shoot: (what: string) => Promise<void>): Promise<void> {
  await operator.goto("/admin");
  await shoot("admin-door");
  await operator.field("Admin token").fill(ADMIN);
  await operator.button("Open").click();
  await operator.heading("Latest failures").waitFor();
  await shoot("admin-overview");
  await operator.link("Hosts").click();
  await operator.heading("quarry").waitFor();
  await shoot("admin-hosts");
  await operator.link("Balances").click();
  await operator.page.locator("tbody tr").first().waitFor();
  await shoot("admin-balances");
  await operator.link(world.owner.balance_id).click();
  await operator.page.getByText("nightly-report").first().waitFor();
  await shoot("admin-balance");
  await operator.link("Usage").click();
  await operator.heading("Hosts").waitFor();
  await shoot("admin-usage");
  await operator.link("Books").click();
  await operator.page.getByText("The books are right").waitFor();
  await shoot("admin-books");
  await operator.link("Operators").click();
  await operator.page.getByText("you", { exact: true }).waitFor();
  await shoot("admin-operators");
  await operator.button("Add operator").click();
  await shoot("admin-add-operator");
  await operator.page.keyboard.press("Escape");
  await operator.link("Configuration").click();
  await operator.page.getByText("open_tier").waitFor();
  await shoot("admin-config");
}
