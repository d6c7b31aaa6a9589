import { describe, expect, test } from "bun:test";
import type { LedgerRecord } from "../../src/ledger/record.ts";
import type { Disk } from "../../src/store/journal/disk.ts";
import {
  type Damage,
  DurableJournal,
  journalFiles,
  MAX_UNAPPLIED,
  readJournal,
  spareFiles,
} from "../../src/store/journal/journal.ts";
import { SimulatedDisk } from "../sim/disk.ts";
import { Random } from "../sim/random.ts";
import { end } from "./end-record.ts";

/** A journal whose turns of the loop and retries are run by hand. */
function journalOn(disk: SimulatedDisk, firstFile = 1, fileBytes = 1_000_000, relaxed = false) {
  const turns: (() => void)[] = [];
  const retries: (() => void)[] = [];
  const reported: (string | null)[] = [];
  const journal = new DurableJournal({
    disk,
    onDisk: (failure) => reported.push(failure),
    firstFile,
    fileBytes,
    relaxed,
    defer: (run) => turns.push(run),
    after: (_ms, run) => retries.push(run),
  });
  const turn = async () => {
    for (const run of turns.splice(0)) run();
    await Promise.resolve();
  };
  const retry = () => {
    for (const run of retries.splice(0)) run();
  };
  const written = async () => {
    const flushed = journal.flushed();
    await turn();
    expect(await flushed).toBe(true);
  };
  return { journal, turn, retry, written, reported };
}

/**
 * Appends the end of each, until the power goes before the last lines are synced; returns the receipts that
 * were acknowledged.
 */
async function writeUntilPowerCut(
  { journal, turn }: ReturnType<typeof journalOn>,
  names: readonly string[],
  disk: SimulatedDisk,
  random: Random,
): Promise<string[]> {
  const acknowledged: string[] = [];
  for (const name of names) {
    const durable = journal.durable(journal.append(end(name)));
    if (durable !== true) void durable.then((yes) => yes && acknowledged.push(`rcpt_${name}`));
    if (random.chance(0.3)) await turn();
  }
  // They reach the page cache.
  disk.syncing = false;
  await turn();
  disk.crash(random, "power");
  return acknowledged;
}

const receiptsOn = (disk: SimulatedDisk) =>
  [...readJournal(disk)].map(({ record }) => (record.kind === "terminal" ? record.receipt : record.kind));

test("a database that takes nothing ends the admission of work before memory runs out", async () => {
  const { journal, written } = journalOn(new SimulatedDisk(), 1, 1e9);
  for (let name = 0; name < MAX_UNAPPLIED - 1; name++) journal.append(end(String(name)));
  await written();
  expect(journal.healthy).toBe(true);
  journal.append(end("last"));
  await written();
  expect(journal.healthy).toBe(false);
  journal.applied(1);
  expect(journal.healthy).toBe(true);
});

describe("durable", () => {
  test("nobody gets yes before the sync, and everybody of a turn gets it after one", async () => {
    const disk = new SimulatedDisk();
    const { journal, turn } = journalOn(disk);
    const first = journal.durable(journal.append(end("a")));
    const second = journal.durable(journal.append(end("b")));
    expect(first).toBeInstanceOf(Promise);
    await turn();
    expect(await first).toBe(true);
    expect(await second).toBe(true);
    expect(journal.syncs).toBe(1);
    expect(journal.durable(1)).toBe(true);
  });

  test("a power cut keeps what was acknowledged, and never a torn or reordered rest", async () => {
    for (let seed = 0; seed < 300; seed++) {
      const random = new Random(seed);
      const disk = new SimulatedDisk();
      const books = journalOn(disk);
      const names = Array.from({ length: 20 }, (_, index) => `r${index}`);
      const acknowledged = await writeUntilPowerCut(books, names, disk, random);
      const found = receiptsOn(disk);
      expect(found.slice(0, acknowledged.length)).toEqual(acknowledged as never);
      expect(found).toEqual(found.map((_, index) => `rcpt_r${index}`) as never);
    }
  });
});

describe("a disk that refuses", () => {
  test.each(["full", "read-only"] as const)(
    "%s: waiters hear no, nothing is lost, and it goes on by itself",
    async (mood) => {
      const disk = new SimulatedDisk();
      const { journal, turn, retry, reported } = journalOn(disk);
      const before = journal.durable(journal.append(end("before")));
      await turn();
      expect(await before).toBe(true);

      disk.mood = mood;
      const refused = journal.durable(journal.append(end("refused")));
      await turn();
      expect(await refused).toBe(false);
      expect(journal.healthy).toBe(false);
      expect(await journal.durable(journal.append(end("meanwhile")))).toBe(false);

      retry();
      await turn();
      expect(reported).toEqual([expect.any(String)]);
      disk.mood = "fine";
      retry();
      await turn();
      expect([journal.healthy, reported]).toEqual([true, [expect.any(String), null]]);
      expect(receiptsOn(disk)).toEqual(["rcpt_before", "rcpt_refused", "rcpt_meanwhile"]);
      expect(journal.unapplied(10).map(({ record }) => record.receipt)).toEqual([
        "rcpt_before",
        "rcpt_refused",
        "rcpt_meanwhile",
      ] as never);
    },
  );
});

test("a new file begins with the open holds, and the old one can then be forgotten", async () => {
  const disk = new SimulatedDisk();
  const { journal, written } = journalOn(disk, 7, 10);
  journal.append(end("old"));
  await written();
  expect(journal.full).toBe(true);
  const hold = { kind: "hold", receipt: "rcpt_open" } as unknown as LedgerRecord;
  journal.rotate(() => [hold]);
  expect(journal.currentFile).toBe(8);
  expect(journal.headWritten).toBe(false);
  journal.append(end("new"));
  await written();
  expect(journal.headWritten).toBe(true);
  await journal.forgetBefore(journal.currentFile);
  expect(journalFiles(disk)).toEqual([8]);
  expect(receiptsOn(disk)).toEqual(["hold", "rcpt_new"]);
});

test("a new file waits for what is being written to the last", async () => {
  const disk = new SimulatedDisk();
  const { journal, turn, written } = journalOn(disk);
  const unanswered: (() => void)[] = [];
  disk.syncsLater = (done) => unanswered.push(done);
  journal.append(end("a"));
  void journal.durable(1);
  await turn();
  journal.rotate(() => []);
  expect(journal.currentFile).toBe(1);
  disk.syncsLater = null;
  for (const answer of unanswered) answer();
  await Promise.resolve();
  journal.append(end("b"));
  await written();
  expect(journal.currentFile).toBe(2);
  expect(receiptsOn(disk)).toEqual(["rcpt_a", "rcpt_b"]);
});

describe("a file that is done with", () => {
  const spare = async (disk: SimulatedDisk) => {
    const { journal, written } = journalOn(disk);
    for (let name = 10; name < 40; name++) journal.append(end(`former${name}`));
    await written();
    journal.rotate(() => []);
    await journal.forgetBefore(2);
    expect(spareFiles(disk)).toEqual([1]);
    return { journal, written };
  };

  test("is written again under another number, and others with it are removed", async () => {
    const disk = new SimulatedDisk();
    const { journal, written } = await spare(disk);
    journal.append(end("a"));
    await written();
    journal.rotate(() => []);
    expect(disk.list()).toEqual(["journal-00000002.log", "journal-00000003.log"]);
    journal.append(end("b"));
    await written();
    journal.rotate(() => []);
    await journal.forgetBefore(4);
    expect(disk.list()).toEqual(["journal-00000004.log", "journal-00000002.spare"]);
  });

  test("gives none of its former lines back, wherever a power cut leaves it", async () => {
    for (let seed = 0; seed < 300; seed++) {
      const random = new Random(seed);
      const disk = new SimulatedDisk();
      await spare(disk);
      // Lines of one length, so that each new one ends where a former one begins.
      const books = journalOn(disk, 3);
      expect(spareFiles(disk)).toEqual([]);
      const names = Array.from({ length: 10 }, (_, index) => `latter${index + 10}`);
      const acknowledged = await writeUntilPowerCut(books, names, disk, random);
      const found = receiptsOn(disk);
      expect(found.slice(0, acknowledged.length)).toEqual(acknowledged as never);
      expect(found).toEqual(found.map((_, index) => `rcpt_latter${index + 10}`) as never);
    }
  });
});

test("a file is closed after the sync of it that is under way, although the disk had refused before", async () => {
  const disk = new SimulatedDisk();
  const { journal, turn, retry } = journalOn(disk);
  disk.mood = "full";
  journal.append(end("a"));
  const refused = journal.flushed();
  await turn();
  expect(await refused).toBe(false);

  disk.mood = "fine";
  const unanswered: (() => void)[] = [];
  disk.syncsLater = (done) => unanswered.push(done);
  retry();
  await turn();
  const closed = journal.close().then(() => "closed");
  expect(await Promise.race([closed, Bun.sleep(0).then(() => "waits")])).toBe("waits");
  for (const answer of unanswered) answer();
  expect(await closed).toBe("closed");
  expect(receiptsOn(disk)).toEqual(["rcpt_a"]);
});

test("a disk that refuses a new file leaves the old one in use", async () => {
  const disk = new SimulatedDisk();
  const { journal, written } = journalOn(disk);
  journal.append(end("a"));
  await written();
  disk.mood = "read-only";
  expect(() => journal.rotate(() => [])).toThrow("EROFS");
  disk.mood = "fine";
  journal.append(end("b"));
  await written();
  expect(journalFiles(disk)).toEqual([1]);
  expect(receiptsOn(disk)).toEqual(["rcpt_a", "rcpt_b"]);
});

test("a line that was altered on the disk is not believed, and neither is what follows it in the last write", async () => {
  const disk = new SimulatedDisk();
  const { journal, written } = journalOn(disk);
  for (const name of ["a", "b", "c"]) journal.append(end(name));
  await written();
  const file = disk.open("journal-00000001.log");
  const text = Buffer.from(disk.read("journal-00000001.log"));
  const at = text.indexOf("rcpt_b");
  const damages: Damage[] = [];
  expect([...readJournal(disk, (damage) => damages.push(damage))]).toHaveLength(3);
  expect(damages).toEqual([]);
  file.write(Buffer.from("rcpt_X"), at);
  file.sync(1);
  expect(receiptsOn(disk)).toEqual(["rcpt_a"]);
  // Reported, because a whole line is behind it; where it begins is where the first one ends.
  expect([...readJournal(disk, (damage) => damages.push(damage))]).toHaveLength(1);
  const byte = text.indexOf("\n") + 1;
  const tornBytes = text.indexOf("\n", byte) + 1 - byte;
  expect(damages).toEqual([
    {
      file: "journal-00000001.log",
      keptAs: "journal-00000001.damaged",
      byte,
      tornBytes,
      linesRead: 0,
      linesLeftOut: 1,
    },
  ]);
  // What a former use of a file left behind is no damage.
  disk.open("journal-00000002.log", "journal-00000001.log");
  expect([...readJournal(disk, (damage) => damages.push(damage))]).toEqual([]);
  expect(damages).toHaveLength(1);
});

test("records are read back with the places where they end, in any script and of any size", async () => {
  const disk = new SimulatedDisk();
  const { journal, written } = journalOn(disk);
  const names = ["żółć", "模型", "😀", "x".repeat(200_000), "a"];
  for (const name of names) {
    journal.append(end(name));
    await written();
  }
  const read = [...readJournal(disk)];
  expect(read.map(({ record }) => record.kind === "terminal" && record.receipt)).toEqual(
    names.map((name) => `rcpt_${name}`) as never,
  );
  expect(read.map(({ bytes }) => bytes)).toEqual(journal.unapplied(names.length).map(({ bytes }) => bytes));
});

describe("relaxed", () => {
  /** Counts what it is asked; its syncs come back when the test says so. */
  const countingDisk = () => {
    const calls = { writes: 0, syncs: 0 };
    const syncs: PromiseWithResolvers<void>[] = [];
    const file = {
      write: () => void calls.writes++,
      truncate: () => {},
      close: () => {},
      sync() {
        calls.syncs += 1;
        const sync = Promise.withResolvers<void>();
        syncs.push(sync);
        return sync.promise;
      },
    };
    const disk: Disk = {
      list: () => [],
      read: () => new Uint8Array(),
      keep: () => {},
      rename: () => {},
      remove: () => {},
      open: () => file,
    };
    const turns: (() => void)[] = [];
    const timers: (() => void)[] = [];
    const run = (these: (() => void)[]) => {
      for (const go of these.splice(0)) go();
    };
    const journal = new DurableJournal({
      disk,
      firstFile: 1,
      fileBytes: 1e9,
      relaxed: true,
      defer: (go) => turns.push(go),
      after: (_ms, go) => timers.push(go),
    });
    return { journal, calls, syncs, turn: () => run(turns), later: () => run(timers) };
  };

  test("it answers once it is written, and syncs a second later what was written until then", async () => {
    const { journal, calls, syncs, turn, later } = countingDisk();
    const first = journal.durable(journal.append(end("a")));
    expect(calls).toEqual({ writes: 0, syncs: 0 });
    turn();
    expect(await first).toBe(true);
    const second = journal.durable(journal.append(end("b")));
    turn();
    expect(await second).toBe(true);
    expect(calls).toEqual({ writes: 2, syncs: 0 });
    later();
    turn();
    expect(calls.syncs).toBe(1);
    expect(journal.unappliedCount).toBe(0);
    syncs[0]!.resolve();
    await Promise.resolve();
    expect(journal.unappliedCount).toBe(2);
  });

  test("what is killed has written all that it answered; a power cut can take the last second of it", async () => {
    for (const kind of ["process", "power"] as const) {
      const lost = new Set<number>();
      for (let seed = 0; seed < 20; seed++) {
        const disk = new SimulatedDisk();
        const { journal, turn } = journalOn(disk, 1, 1_000_000, true);
        const answered = ["a", "b", "c"].map((name) => journal.durable(journal.append(end(name))));
        await turn();
        expect(await Promise.all(answered)).toEqual([true, true, true]);
        disk.crash(new Random(seed), kind);
        lost.add(3 - receiptsOn(disk).length);
      }
      expect(kind === "process" ? [...lost] : lost.size > 1).toEqual(kind === "process" ? [0] : true);
    }
  });

  test("what it answered stays in the file although the disk then refuses what follows", async () => {
    const disk = new SimulatedDisk();
    const { journal, turn, retry } = journalOn(disk, 1, 1_000_000, true);
    const answered = journal.durable(journal.append(end("a")));
    await turn();
    expect(await answered).toBe(true);
    disk.mood = "full";
    const refused = journal.durable(journal.append(end("b")));
    await turn();
    expect(await refused).toBe(false);
    retry();
    await turn();
    disk.crash(new Random(1), "process");
    expect(receiptsOn(disk)).toEqual(["rcpt_a"]);
  });

  test("who needs more than that waits for no second, but for a sync", async () => {
    const { journal, calls, syncs, turn } = countingDisk();
    void journal.durable(journal.append(end("a")));
    turn();
    const flushed = journal.flushed();
    turn();
    expect(calls.syncs).toBe(1);
    syncs[0]!.resolve();
    expect(await flushed).toBe(true);
  });

  test("it closes only when everything is synced", async () => {
    const { journal, calls, syncs, turn } = countingDisk();
    void journal.durable(journal.append(end("a")));
    turn();
    const closed = journal.close();
    turn();
    expect(calls.syncs).toBe(1);
    syncs[0]!.resolve();
    await closed;
  });

  test("what it could not sync it writes again, and takes nothing new until then", async () => {
    const { journal, calls, syncs, turn, later } = countingDisk();
    const answered = journal.durable(journal.append(end("a")));
    turn();
    expect(await answered).toBe(true);
    later();
    turn();
    syncs[0]!.reject(new Error("EIO"));
    await Promise.resolve();
    await Promise.resolve();
    expect(journal.healthy).toBe(false);
    expect(await journal.durable(journal.append(end("b")))).toBe(false);
    later();
    turn();
    expect(calls).toEqual({ writes: 2, syncs: 2 });
    syncs[1]!.resolve();
    await Promise.resolve();
    expect(journal.healthy).toBe(true);
    expect(journal.unapplied(9).map(({ record }) => record.receipt as string)).toEqual(["rcpt_a", "rcpt_b"]);
  });

  test("a new file waits until the old one is synced", async () => {
    const disk = new SimulatedDisk();
    const { journal, turn } = journalOn(disk, 1, 10, true);
    void journal.durable(journal.append(end("a")));
    await turn();
    journal.rotate(() => []);
    expect(journal.currentFile).toBe(1);
    await turn();
    expect(journal.currentFile).toBe(2);
    disk.crash(new Random(1), "power");
    expect(receiptsOn(disk)).toEqual(["rcpt_a"]);
  });
});
