import { existsSync } from "node:fs";
import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core";
import { atEnd } from "../at-end.ts";
import { ADMIN } from "../process/gateway.ts";

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

/** Closes whatever visitors have open; throws if a page has complained that no test has expected to. */
export async function endVisits(): Promise<void> {
  const complaints = visitors.splice(0).flatMap((visitor) => visitor.complaints);
  for (const context of (await launching)?.contexts() ?? []) await context.close();
  if (complaints.length > 0) throw new Error(complaints.join("\n"));
}

const visitors: Visitor[] = [];

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

  static async arrive(home: string, appearance: Appearance = {}): Promise<Visitor> {
    const context = await (await launch()).newContext({
      viewport: { width: appearance.width ?? 1280, height: appearance.height ?? 800 },
      colorScheme: appearance.colorScheme ?? "light",
      reducedMotion: "reduce",
      locale: "en",
      timezoneId: "UTC",
    });
    context.setDefaultTimeout(STEP_MS);
    const visitor = new Visitor(context, await context.newPage(), home);
    visitors.push(visitor);
    return visitor;
  }

  goto(path: string): Promise<unknown> {
    return this.page.goto(this.home + path);
  }

  /** Pages that are loaded from now on find somebody signed in, as a reload would: the owner, and the operator. */
  enter(recoverySecret: string): Promise<unknown> {
    return this.page.addInitScript(
      ([recovery, admin]) => {
        if (location.protocol === "about:") return;
        sessionStorage.setItem("gateway-recovery", recovery!);
        sessionStorage.setItem("gateway-admin", admin!);
      },
      [recoverySecret, ADMIN],
    );
  }

  /** By the operator's door. */
  async operate(token: string = ADMIN): Promise<void> {
    await this.goto("/admin");
    await this.field("Admin token").fill(token);
    await this.button("Open").click();
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
