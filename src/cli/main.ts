import { run } from "./program.ts";

/** `bun run gateway <command>`. */
process.exitCode = await run(process.argv.slice(2), {
  env: process.env,
  cwd: process.cwd(),
  fetch,
  input: () => Bun.stdin.text(),
  out: (text) => process.stdout.write(text),
  err: (text) => process.stderr.write(text),
  serve: async () => void (await import("../main.ts")),
  columns: process.stderr.isTTY ? process.stderr.columns : null,
});
