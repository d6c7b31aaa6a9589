import { expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openDataFolder } from "../../src/store/data-folder.ts";
import { systemRandom } from "../../src/units/random.ts";

test("a start that was killed while it made the token and the node's name leaves no gateway without them", () => {
  const path = mkdtempSync(join(tmpdir(), "data-folder-"));
  for (const name of ["admin-token", "node-name"]) writeFileSync(join(path, name), "");
  const open = () => {
    const folder = openDataFolder(path, undefined, systemRandom);
    folder.release();
    return { token: folder.adminToken, name: folder.nodeName() };
  };
  const first = open();
  expect(first.token).toStartWith("or-admin-");
  expect(first.name).toStartWith("node_");
  expect(open()).toEqual(first);
  rmSync(path, { recursive: true });
});

test("a token that the operator wrote stands", () => {
  const path = mkdtempSync(join(tmpdir(), "data-folder-"));
  writeFileSync(join(path, "admin-token"), "of-our-own");
  const folder = openDataFolder(path, undefined, systemRandom);
  expect(folder.adminToken).toBe("of-our-own");
  expect(readFileSync(join(path, "admin-token"), "utf8")).toBe("of-our-own");
  folder.release();
  rmSync(path, { recursive: true });
});
