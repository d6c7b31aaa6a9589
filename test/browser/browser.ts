import { existsSync } from "node:fs";
import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core";
import { atEnd } from "../at-end.ts";

/** The first is Chromium without a window: half the work, for the same pages. */
const PATHS = [
  "/usr/bin/chromium-headless-shell",
  "/usr/bin/chromium",
  "/usr/bin/chromium-browser",
  "/usr/bin/google-chrome",
];

const installed = PATHS.filter((path) => existsSync(path));
const executable = process.env.CHROMIUM ?? installed.find(starts) ?? null;
const demanded = process.env.CI !== undefined;

/** True where there is no browser and nobody demands one. The reason is printed: a skipped walk has shown nothing. */
export const browserMissing = executable === null && !demanded;
if (browserMissing) {
  const reason = installed.length === 0 ? "Chromium is missing" : `${installed.join(", ")} cannot start`;
  console.warn(
    `skipped: tests in a browser (${reason}: apt-get install chromium-headless-shell, or CHROMIUM=path)`,
  );
}

/** Ubuntu has a script in Chromium's place, which only says where to get it. */
function starts(path: string): boolean {
  return Bun.spawnSync([path, "--version"], { stdout: "ignore", stderr: "ignore" }).exitCode === 0;
}

/** The browser, which the files of a process share. */
export function launch(): Promise<Browser> {
  if (launching === null) {
    launching = launched();
    atEnd(async () => (await launching)!.close());
  }
  return launching;
}

let launching: Promise<Browser> | null = null;

/** Closes whatever a file's visitors have open. */
export async function endVisits(browser: Browser | undefined): Promise<void> {
  for (const context of browser?.contexts() ?? []) await context.close();
}

async function launched(): Promise<Browser> {
  if (executable === null) {
    throw new Error(
      "The browser tests need Chromium: apt-get install chromium-headless-shell, or set CHROMIUM to its path.",
    );
  }
  return chromium.launch({
    executablePath: executable,
    // Root cannot have one, nor can everybody else on every machine; the pages are the gateway's own.
    chromiumSandbox: false,
    // A graphics card imitated in software takes 400 MB, and shows these pages no better.
    args: ["--disable-gpu"],
  });
}

/**
 * A visitor with a browser of their own, whose every complaint is collected: errors, refused policies,
 * strange requests.
 */
export class Visitor {
  readonly complaints: string[] = [];
  private constructor(
    readonly context: BrowserContext,
    readonly page: Page,
    private readonly home: string,
  ) {
    page.on("pageerror", (error) => this.complaints.push(String(error)));
    page.on("console", (message) => {
      // A refusal of the API is logged by the browser, and is no failure of the page.
      if (message.type() === "error" && !/status of 4\d\d/.test(message.text())) {
        this.complaints.push(message.text());
      }
    });
    page.on("request", (request) => {
      const url = request.url().replace(/^blob:/, "");
      if (!url.startsWith(home) && !url.startsWith("data:")) {
        this.complaints.push(`a request left the gateway: ${request.url()}`);
      }
    });
    page.on("dialog", (dialog) => void dialog.accept());
  }

  static async arrive(browser: Browser, home: string, appearance: Appearance = {}): Promise<Visitor> {
    const context = await browser.newContext({
      viewport: { width: appearance.width ?? 1280, height: appearance.height ?? 800 },
      colorScheme: appearance.colorScheme ?? "light",
      reducedMotion: "reduce",
      locale: "en",
      timezoneId: "UTC",
    });
    context.setDefaultTimeout(STEP_MS);
    return new Visitor(context, await context.newPage(), home);
  }

  goto(path: string): Promise<unknown> {
    return this.page.goto(this.home + path);
  }

  /** By a recovery link, which asks before it opens anything. */
  async recover(secret: string): Promise<void> {
    await this.goto(`/dashboard#recover=${secret}`);
    await this.button("Open this balance").click();
  }

  /** The content of the file that a button saves, under a name like this. */
  async saved(name: string, file: RegExp): Promise<string> {
    const [download] = await Promise.all([this.page.waitForEvent("download"), this.button(name).click()]);
    if (!file.test(download.suggestedFilename())) throw new Error(`saved as ${download.suggestedFilename()}`);
    return Bun.file(await download.path()).text();
  }

  button(name: string | RegExp) {
    return this.page.getByRole("button", { name, exact: typeof name === "string" });
  }

  link(name: string | RegExp) {
    return this.page.getByRole("link", { name, exact: typeof name === "string" }).first();
  }

  heading(name: string | RegExp) {
    return this.page.getByRole("heading", { name, exact: typeof name === "string" });
  }

  field(label: string | RegExp) {
    return this.page.getByLabel(label, { exact: typeof label === "string" });
  }
}

export interface Appearance {
  readonly width?: number;
  readonly height?: number;
  readonly colorScheme?: "light" | "dark";
}

const STEP_MS = 60_000;
