import { expect, test } from "bun:test";
import { postgresMissing, run, unprivileged, WRAPPERS } from "./server.ts";

const reason = process.getuid?.() === 0 ? postgresMissing() : "only root needs another user";
if (reason !== null) console.warn(`skipped: becoming the user postgres (${reason})`);

test.skipIf(reason !== null).each(WRAPPERS.map((wrapper) => [wrapper[0], wrapper] as const))(
  "root runs PostgreSQL's programs through %s, with their arguments as they are",
  async (_, wrapper) => {
    const become = unprivileged([wrapper]);
    // Whichever is installed serves.
    if (become === null) return;
    await run([
      ...become,
      "sh",
      "-ec",
      '[ "$(id -un)" = postgres ]; [ "$1" = "-D two words" ]',
      "sh",
      "-D two words",
    ]);
  },
);

test.skipIf(reason !== null)("the tools are found although the PATH has no folder of the system's", () => {
  const path = process.env.PATH;
  process.env.PATH = "/nonexistent";
  try {
    expect(postgresMissing()).toBeNull();
  } finally {
    process.env.PATH = path;
  }
});

test("without any of these tools root has no PostgreSQL, everybody else has", () => {
  expect(unprivileged([["no-such-tool"]])).toEqual(process.getuid?.() === 0 ? null : []);
});
