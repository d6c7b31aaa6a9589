import { readFileSync } from "node:fs";
import type axe from "axe-core";
import type { Page } from "playwright-core";

/** What axe-core finds serious or critical on the page as it is, by these rules: rule, element, and what it says of it. */
export async function violations(page: Page, rules: readonly string[] = STANDARDS): Promise<string[]> {
  // Evaluated by the browser's own debugger, which the page's policy does not bind.
  if (await page.evaluate(() => !("axe" in globalThis))) await page.evaluate(AXE);
  const { violations } = await page.evaluate(
    (runOnly) =>
      (globalThis as unknown as { axe: typeof axe }).axe.run(document, {
        resultTypes: ["violations"],
        runOnly,
      }),
    [...rules],
  );
  return violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .flatMap(({ id, nodes }) => nodes.map(({ html, failureSummary }) => `${id}: ${html} ${failureSummary}`));
}

/** The minified one: it is read by every page that is loaded. */
const AXE = readFileSync(Bun.resolveSync("axe-core/axe.min.js", import.meta.dir), "utf8");

const STANDARDS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
