#!/usr/bin/env node
// `npx` runs this with Node.js: it hands over to the Bun that npm installed beside it.
const { spawn } = require("node:child_process");
const { existsSync } = require("node:fs");
const { join } = require("node:path");

const child = spawn(bun(), [join(__dirname, "lib", "main.js"), ...process.argv.slice(2)], {
  stdio: "inherit",
});
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
// npx ends on SIGTERM without passing it on. A shell's background process outlives its shell on purpose, so only npx counts.
if (process.env.npm_command === "exec") {
  const npx = process.ppid;
  const watch = setInterval(() => {
    if (process.ppid === npx) return;
    clearInterval(watch);
    child.kill("SIGTERM");
  }, 500);
}
child.on("error", ({ message }) => {
  console.error(`Bun could not be started (${message}). Install it with: npm install bun`);
  process.exit(1);
});
child.on("exit", (code, signal) => {
  if (signal === null) process.exit(code);
  for (const name of ["SIGINT", "SIGTERM", "SIGHUP"]) process.removeAllListeners(name);
  process.kill(process.pid, signal);
});

/** npm may have been told to run no install scripts: then Bun is still where its own package for this machine put it. */
function bun() {
  const own = join(require.resolve("bun/package.json"), "..");
  const names = [`${process.platform}-${process.arch.replace("arm64", "aarch64")}`];
  if (process.platform === "linux" && !process.report.getReport().header.glibcVersionRuntime)
    names.unshift(`${names[0]}-musl`);
  const file = process.platform === "win32" ? "bun.exe" : "bun";
  for (const name of names) {
    try {
      const path = join(
        require.resolve(`@oven/bun-${name}/package.json`, { paths: [own] }),
        "..",
        "bin",
        file,
      );
      if (existsSync(path)) return path;
    } catch {
      // Not for this machine.
    }
  }
  return join(own, "bin", "bun.exe");
}
