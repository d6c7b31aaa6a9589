import type { CommandContext } from "./console.ts";

/** `bun run gateway <command>`. */
const args = process.argv.slice(2);
const serve = async () => void (await import("../main.ts"));
const context: CommandContext = {
  env: process.env,
  cwd: process.cwd(),
  fetch,
  input: () => Bun.stdin.text(),
  out: (text) => process.stdout.write(text),
  err: (text) => process.stderr.write(text),
  serve,
  columns: process.stderr.isTTY ? process.stderr.columns : null,
};
// A start begins the process again (main.ts), and so loads no commands before.
if (args.length === 1 && args[0] === "start") await serve();
else process.exitCode = await (await import("./program.ts")).run(args, context);
