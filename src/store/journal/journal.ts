import type { Journal } from "../../ledger/ledger.ts";
import { type LedgerRecord, parseRecord, type TerminalRecord } from "../../ledger/record.ts";
import type { ReceiptId } from "../../units/id.ts";
import type { Disk, DiskFile } from "./disk.ts";
import { DurableWaiters } from "./durable-waiters.ts";
import { JournalLines, linesBehind, readLines } from "./lines.ts";

/**
 * The ledger's write-ahead journal: lines of `check json`, appended to numbered files. It exists because a
 * request must be durable twice (its hold, its end) and SQLite would pay for each with index pages and a
 * blocking fsync on the event loop. Here everything of one turn of the loop shares a write and a sync, which
 * leaves the loop where the disk is slow. The database (SQLite, or the PostgreSQL that nodes share) follows
 * at leisure: `unapplied` are the ends that are durable, each with the place up to which the database then
 * knows the journal, stored in the same transaction.
 *
 * A relaxed journal acknowledges once a record is written, which survives the death of the process, and syncs
 * once a second, which survives a power cut. Everything else that depends on a record still waits for the
 * sync.
 *
 * When the disk refuses (full, read-only, broken), nothing is acknowledged: waiters get `false`, `healthy`
 * turns false so that no new hold is taken, the lines stay in memory, and the journal tries again until the
 * disk accepts them.
 */
export class DurableJournal implements Journal {
  private file: DiskFile;
  private number: number;
  /** Written of the file; synced. */
  private bytes = 0;
  private syncedBytes = 0;
  /**
   * Acknowledged, so that the file keeps it whatever the disk refuses: it may be all that a killed process
   * leaves.
   */
  private keptBytes = 0;
  private headWaits = false;
  private rotating: (() => readonly LedgerRecord[]) | null = null;
  private readonly lines = new JournalLines();
  private appended = 0;
  private writtenThrough = 0;
  private durableThrough = 0;
  private pending: PendingRecord[] = [];
  private unsynced: PendingRecord[] = [];
  /** Only a relaxed journal acknowledges writes before they are synced. */
  private readonly writeWaiters = new DurableWaiters();
  private readonly waiters = new DurableWaiters();
  /** Something has been unsynced for long enough. */
  private overdue = false;
  private isTimed = false;
  private state: "idle" | "scheduled" | "writing" | "retrying" | "closed" = "idle";
  private flushing: Promise<void> | null = null;
  private readonly queue: Unapplied[] = [];
  /** The disk's last refusal, until it accepts again. */
  failure: string | null = null;
  /** Syncs since start, for metrics. */
  syncs = 0;

  constructor(private readonly options: JournalOptions) {
    this.number = options.firstFile;
    this.file = this.openFile(this.number);
  }

  append(record: LedgerRecord): number {
    this.pending.push(new PendingRecord(record, ++this.appended));
    return this.appended;
  }

  /** True once the record may be acknowledged; false when the disk refused it for now. */
  durable(sequence: number): true | Promise<boolean> {
    return this.options.relaxed ? this.written(sequence) : this.synced(sequence);
  }

  withdraw(sequence: number): boolean {
    const at = this.pending.findIndex((line) => line.sequence === sequence);
    if (at === -1) return false;
    this.pending.splice(at, 1);
    return true;
  }

  /**
   * Paid work may start: the disk accepts, and memory for what waits for it, or for the database, is not
   * running out.
   */
  get healthy(): boolean {
    const waiting = this.pending.length + this.unsynced.length;
    return this.failure === null && waiting < MAX_PENDING && this.queue.length < MAX_UNAPPLIED;
  }

  /** Writes what was appended although nobody waits for it. */
  schedule(): void {
    if (this.state !== "idle" || (this.pending.length === 0 && !this.isSyncDue)) return;
    this.state = "scheduled";
    this.options.defer(() => {
      if (this.state === "scheduled") this.flushing = this.flush();
    });
  }

  /** Resolves true when everything appended so far is on the disk, relaxed or not. */
  async flushed(): Promise<boolean> {
    return this.synced(this.appended);
  }

  /** Durable ends that the database does not know yet, oldest first, at most `most`. */
  unapplied(most: number): readonly Unapplied[] {
    return this.queue.slice(0, most);
  }

  /** The one of these with this receipt; null when there is none. */
  unappliedEnd(receipt: ReceiptId): TerminalRecord | null {
    return this.queue.find(({ record }) => record.receipt === receipt)?.record ?? null;
  }

  get unappliedCount(): number {
    return this.queue.length;
  }

  /**
   * The database has the oldest `count` of these now, durably or not: the files that hold them stay until
   * `forgetBefore`.
   */
  applied(count: number): void {
    this.queue.splice(0, count);
  }

  /** Records that are appended and not on the disk yet. */
  get undurable(): number {
    return this.appended - this.durableThrough;
  }

  /** The last record that is on the disk. */
  get durableNow(): number {
    return this.durableThrough;
  }

  /**
   * The open holds that the current file begins with are on the disk, and so are the ends that were waiting
   * when it was started. Earlier files are no longer needed for the holds in them.
   */
  get headWritten(): boolean {
    return !this.headWaits;
  }

  /** The file being written. */
  get currentFile(): number {
    return this.number;
  }

  /** Time for `rotate`. */
  get full(): boolean {
    return this.bytes >= this.options.fileBytes;
  }

  /**
   * Continues in a new file that begins with the open holds: now, or once the write under way is done. If the
   * file is still full later, call this again.
   */
  rotate(openHolds: () => readonly LedgerRecord[]): void {
    if (this.state === "writing" || this.unsynced.length > 0) {
      this.rotating = openHolds;
      this.schedule();
      return;
    }
    if (this.state !== "idle" && this.state !== "scheduled") return;
    const next = this.openFile(this.number + 1);
    const open = openHolds();
    this.file.close();
    this.file = next;
    this.number += 1;
    this.bytes = this.syncedBytes = this.keptBytes = 0;
    this.pending = [...open.map((record) => new PendingRecord(record, 0)), ...this.pending];
    this.headWaits = this.pending.length > 0;
    this.schedule();
  }

  /**
   * Drops the files before this one, oldest first: the database has all of them durably. One is kept for
   * reuse under another number, because a file that already has its length needs no padding and spares the
   * file system's journal.
   */
  async forgetBefore(number: number): Promise<void> {
    for (const file of journalFiles(this.options.disk)) if (file < number) await this.forget(file);
  }

  private forget(file: number): void | Promise<void> {
    const { disk } = this.options;
    return spareFiles(disk).length === 0
      ? disk.rename(fileName(file), spareName(file))
      : disk.remove(fileName(file));
  }

  private openFile(number: number): DiskFile {
    const { disk } = this.options;
    const [spare] = spareFiles(disk);
    return disk.open(fileName(number), spare === undefined ? undefined : spareName(spare));
  }

  async close(): Promise<void> {
    await this.flushed();
    // After a refusal nobody waited for the disk: a sync that is still under way needs the file.
    while (this.state === "writing") await this.flushing;
    this.state = "closed";
    this.file.close();
  }

  private written(sequence: number): true | Promise<boolean> {
    return this.when(sequence <= this.writtenThrough, this.writeWaiters, sequence);
  }

  private synced(sequence: number): true | Promise<boolean> {
    return this.when(sequence <= this.durableThrough, this.waiters, sequence);
  }

  private when(isSo: boolean, waiters: DurableWaiters, sequence: number): true | Promise<boolean> {
    if (!isSo && this.failure !== null) return Promise.resolve(false);
    const waiting = isSo ? true : waiters.wait(sequence);
    this.schedule();
    return waiting;
  }

  /** In a relaxed journal, what is written waits until somebody needs it synced, or a second is over. */
  private get isSyncDue(): boolean {
    const isNeeded = this.waiters.any || this.rotating !== null || this.failure !== null;
    return this.unsynced.length > 0 && (this.overdue || isNeeded);
  }

  private async flush(): Promise<void> {
    this.state = "writing";
    try {
      if (this.pending.length > 0) this.write();
      if (this.options.relaxed && !this.isSyncDue) return this.syncLater();
      const synced = this.file.sync(this.unsynced.length);
      if (synced !== undefined) await synced;
      this.syncs += 1;
      this.accept();
    } catch (error) {
      this.refuse(error);
    }
  }

  private write(): void {
    const batch = this.pending;
    this.pending = [];
    this.waiters.sent(this.appended);
    this.writeWaiters.sent(this.appended);
    this.lines.begin(this.number, this.bytes === this.syncedBytes);
    for (const line of batch) line.setPosition(this.number, this.bytes + this.lines.add(line.record));
    if (this.unsynced.length === 0) this.unsynced = batch;
    else for (const line of batch) this.unsynced.push(line);
    this.file.write(this.lines.bytes(), this.bytes);
    this.bytes = batch.at(-1)!.bytes;
    if (this.options.relaxed) this.keptBytes = Math.max(this.keptBytes, this.bytes);
    this.writtenThrough = this.appended;
    this.writeWaiters.answer(true, this.writtenThrough);
  }

  private syncLater(): void {
    this.state = "idle";
    if (this.isTimed) return;
    this.isTimed = true;
    this.options.after(RELAXED_SYNC_MS, () => {
      this.isTimed = false;
      this.overdue = true;
      this.schedule();
    });
  }

  private accept(): void {
    const batch = this.unsynced;
    this.unsynced = [];
    this.syncedBytes = this.keptBytes = this.bytes;
    this.overdue = false;
    this.noteDisk(null);
    this.headWaits = false;
    for (const line of batch) {
      if (line.sequence > this.durableThrough) this.durableThrough = line.sequence;
      if (line.isEnd()) this.queue.push(line);
    }
    this.state = "idle";
    this.waiters.answer(true, this.durableThrough);
    this.rotateNow();
    if (this.queue.length > 0) this.options.onUnapplied?.();
    this.schedule();
  }

  private rotateNow(): void {
    const { rotating } = this;
    this.rotating = null;
    try {
      if (rotating !== null) this.rotate(rotating);
    } catch {
      // The next attempt will report it.
    }
  }

  /** Reports a disk that refuses again and again only once. */
  private noteDisk(failure: string | null): void {
    const isNews = (failure === null) !== (this.failure === null);
    this.failure = failure;
    if (isNews) this.options.onDisk?.(failure);
  }

  /**
   * Everything unsynced goes first in the next attempt, where it was: so what was acknowledged is overwritten
   * with itself. The rest is cut off.
   */
  private refuse(error: unknown): void {
    this.noteDisk(error instanceof Error ? error.message : String(error));
    this.pending = [...this.unsynced, ...this.pending];
    this.unsynced = [];
    this.bytes = this.syncedBytes;
    this.writtenThrough = this.durableThrough;
    this.state = "retrying";
    try {
      this.file.truncate(this.keptBytes);
    } catch {
      // A torn tail is found by its checksum, and overwritten by the next try.
    }
    this.waiters.answer(false, Number.POSITIVE_INFINITY);
    this.writeWaiters.answer(false, Number.POSITIVE_INFINITY);
    this.options.after(RETRY_MS, () => {
      if (this.state !== "retrying") return;
      this.state = "idle";
      this.schedule();
    });
  }
}

export interface JournalOptions {
  readonly disk: Disk;
  /** A number that no file has yet. */
  readonly firstFile: number;
  readonly fileBytes: number;
  /** Acknowledges what is written before it is synced: a power cut can lose the last second. */
  readonly relaxed: boolean;
  /** Runs once everything of this turn of the loop has been appended. */
  readonly defer: (run: () => void) => void;
  readonly after: (ms: number, run: () => void) => void;
  /** There are durable ends that the database does not know yet. */
  readonly onUnapplied?: () => void;
  /** Why the disk begins to refuse; null once it accepts again. */
  readonly onDisk?: ((failure: string | null) => void) | undefined;
}

export interface Unapplied {
  readonly record: TerminalRecord;
  readonly sequence: number;
  readonly file: number;
  /** Where the record ends in its file. */
  readonly bytes: number;
}

/** How far a batch reaches in each of its files. */
export function fileOffsets(batch: readonly Unapplied[]): ReadonlyMap<number, number> {
  const reached = new Map<number, number>();
  for (const { file, bytes } of batch) reached.set(file, bytes);
  return reached;
}

/** A record on its way to the disk. */
class PendingRecord {
  /** Where it stands once it is written. */
  file = 0;
  bytes = 0;

  constructor(
    readonly record: LedgerRecord,
    readonly sequence: number,
  ) {}

  setPosition(file: number, bytes: number): void {
    this.file = file;
    this.bytes = bytes;
  }

  isEnd(): this is Unapplied {
    return this.record.kind === "terminal";
  }
}

/** Several seconds of a busy gateway. */
const MAX_PENDING = 100_000;
/** Some 150 MB of ends, while the database refuses them. */
export const MAX_UNAPPLIED = 100_000;
const RETRY_MS = 250;
const RELAXED_SYNC_MS = 1_000;

/**
 * Every record in the journal's files, in order, with the place where it ends. Behind the first torn line of a
 * file, only what the disk had confirmed; and the operator sees that there is something.
 */
export function* readJournal(
  disk: Disk,
  onDamage: (damage: Damage) => void = () => {},
): Generator<{ record: LedgerRecord; file: number; bytes: number }> {
  for (const file of journalFiles(disk)) {
    const bytes = disk.read(fileName(file));
    let read = 0;
    for (const { text, end } of readLines(bytes, file)) {
      read = end;
      yield { record: parseRecord(text), file, bytes: end };
    }
    const { confirmed, unconfirmed, tornBytes } = linesBehind(bytes, read, file);
    for (const { text, end } of confirmed) yield { record: parseRecord(text), file, bytes: end };
    if (confirmed.length + unconfirmed === 0) continue;
    onDamage({
      file: fileName(file),
      keptAs: damagedName(file),
      byte: read,
      tornBytes,
      linesRead: confirmed.length,
      linesLeftOut: unconfirmed,
    });
  }
}

/**
 * A line that is torn although lines behind it are whole. Power that goes in the middle of a write can leave
 * that, before anything of the write is acknowledged; otherwise the disk has changed what it had confirmed.
 */
export interface Damage {
  readonly file: string;
  /** Its name for good: the file itself goes once everything before the torn line is in the database. */
  readonly keptAs: string;
  /** Where the torn line begins. */
  readonly byte: number;
  /** In all, up to the last whole line. */
  readonly tornBytes: number;
  /** Whole lines behind it that the disk had confirmed, and that are read as if nothing were torn. */
  readonly linesRead: number;
  /** The others. */
  readonly linesLeftOut: number;
}

/** Numbers of the journal's files, ascending. */
export const journalFiles = (disk: Pick<Disk, "list">): number[] => numbersOf(disk, /^journal-(\d{8})\.log$/);

/** Former numbers of the files that are kept to be written again, ascending: one at most, but for a crash. */
export const spareFiles = (disk: Disk): number[] => numbersOf(disk, /^journal-(\d{8})\.spare$/);

const numbersOf = (disk: Pick<Disk, "list">, name: RegExp): number[] =>
  disk
    .list()
    .flatMap((file) => {
      const match = name.exec(file);
      return match === null ? [] : [Number(match[1])];
    })
    .sort((a, b) => a - b);

export const fileName = (number: number): string => `journal-${String(number).padStart(8, "0")}.log`;
const damagedName = (number: number): string => `journal-${String(number).padStart(8, "0")}.damaged`;
/** Files that were found damaged, among the names in a folder. */
export const isDamagedFile = (name: string): boolean => /^journal-\d{8}\.damaged$/.test(name);
const spareName = (number: number): string => `journal-${String(number).padStart(8, "0")}.spare`;
