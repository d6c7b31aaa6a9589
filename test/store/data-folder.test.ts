import { expect, test } from "bun:test";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openDataFolder, unkeptFolder } from "../../src/store/data-folder.ts";
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
  writeFileSync(join(path, "admin-token"), "of-our-own-making");
  const folder = openDataFolder(path, undefined, systemRandom);
  expect(folder.adminToken).toBe("of-our-own-making");
  expect(readFileSync(join(path, "admin-token"), "utf8")).toBe("of-our-own-making");
  folder.release();
  rmSync(path, { recursive: true });
});

test("no start with an admin token of fewer than 16 characters", () => {
  const path = join(mkdtempSync(join(tmpdir(), "data-folder-")), "data");
  const open = (token: string | undefined) => () => openDataFolder(path, token, systemRandom).release();
  for (const token of ["a", "0123456789abcde"]) {
    expect(open(token)).toThrow(
      `GATEWAY_ADMIN_TOKEN must have 16 characters or more, and has ${token.length}`,
    );
    expect(open(token)).toThrow("openssl rand -hex 32");
    expect(() => unkeptFolder(path, token, systemRandom)).toThrow("must have 16 characters or more");
  }
  expect(existsSync(path)).toBe(false);
  open("0123456789abcdef")();
  open("")();
  writeFileSync(join(path, "admin-token"), "hunter2");
  expect(open(undefined)).toThrow("admin-token must have 16 characters or more, and has 7");
  rmSync(path, { recursive: true });
});
