import { afterEach, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { folderDisk } from "../../src/store/journal/disk.ts";

const folder = mkdtempSync(join(tmpdir(), "disk-"));
afterEach(() => rmSync(join(folder, "file")));

const bytes = (text: string) => new TextEncoder().encode(text);
const content = (): string => readFileSync(join(folder, "file"), "latin1").replace(/\0+$/, "");

test("the file does not grow with each write, and holds nothing but zeros behind what was written", () => {
  const file = folderDisk(folder).open("file");
  const sizes = new Set<number>();
  for (let at = 0; at < 400; at += 4) {
    file.write(bytes("abc\n"), at);
    sizes.add(readFileSync(join(folder, "file")).length);
  }
  expect(sizes.size).toBe(1);
  expect(content()).toBe("abc\n".repeat(100));
  file.close();
});

test("what follows a cut is written where the cut was", () => {
  const file = folderDisk(folder).open("file");
  file.write(bytes("one\ntorn"), 0);
  file.truncate(4);
  expect(content()).toBe("one\n");
  file.write(bytes("two\n"), 4);
  expect(content()).toBe("one\ntwo\n");
  file.close();
});

test("a file that is opened again keeps what it has", () => {
  const disk = folderDisk(folder);
  const first = disk.open("file");
  first.write(bytes("one\ntwo\n"), 0);
  first.close();
  const again = disk.open("file");
  again.write(bytes("TWO\n"), 4);
  again.close();
  expect(content()).toBe("one\nTWO\n");
});

test("a file that is made of another has its length and content, and nothing goes by the old name", async () => {
  const disk = folderDisk(folder);
  const first = disk.open("first");
  first.write(bytes("one\ntwo\n"), 0);
  first.close();
  await disk.rename("first", "spare");
  expect(disk.list()).toEqual(["spare"]);
  const length = readFileSync(join(folder, "spare")).length;
  const file = disk.open("file", "spare");
  file.write(bytes("ONE\n"), 0);
  file.close();
  expect(disk.list()).toEqual(["file"]);
  expect(content()).toBe("ONE\ntwo\n");
  expect(readFileSync(join(folder, "file")).length).toBe(length);
});

test("a piece that is larger than the step is written whole", async () => {
  const file = folderDisk(folder, 5).open("file");
  const large = `${"x".repeat(1_000_000)}\n`;
  file.write(bytes(large), 0);
  file.write(bytes("end\n"), large.length);
  await file.sync(1);
  expect(content()).toBe(`${large}end\n`);
  file.close();
});
