import { assert } from "../../units/assert.ts";
import { atMost, type Clock, type EpochMs, epochMs, pause } from "../../units/clock.ts";
import type { Figure } from "../../units/figure.ts";
import type { Log } from "../../units/log.ts";
import { Rounds } from "../../units/rounds.ts";
import { type ExportFile, exportFile, readRows } from "./export-file.ts";
import type { ExportClaim, ExportCursor, ExportKind, SqlExportStore } from "./export-store.ts";
import { type ExportSettings, type ExportStorage, targetText } from "./export-target.ts";

/**
 * Puts what is booked into files at the target of the configuration, in order and once: by one process at a time, a file
 * at a time. A file's rows are written down, then it is put, then the cursor moves behind it; a process that finds a file that was
 * started puts the same one again. A target that is away delays the rest, and no request.
 */
export class Exporter {
  private rounds: Rounds | null = null;
  private active: ActiveTarget | null = null;
  /** As this process last read it. */
  private caughtUpAt: EpochMs | null = null;
  private files = 0;
  private rows = 0;

  constructor(private readonly deps: ExporterDeps) {}

  /** Takes the target of the configuration, at a start and after each reload; never rejects. */
  async prepare(): Promise<void> {
    const settings = this.deps.settings();
    const text = JSON.stringify(settings);
    if (this.active === null ? settings === null && this.rounds === null : this.active.text === text) return;
    const stopped = this.rounds?.stop();
    this.active = settings === null ? null : { settings, text, name: targetText(settings.to), storage: null };
    this.caughtUpAt = null;
    this.rounds = null;
    await stopped;
    if (this.active === null) return this.configure(null).catch((error) => this.failed(error));
    this.rounds = new Rounds(this.deps.clock, 0, () => this.round(this.active!));
  }

  /** Resolves when nothing is being exported any more. */
  async stop(): Promise<void> {
    await this.rounds?.stop();
  }

  /** Without a target, none. */
  figures(): readonly Figure[] {
    const { caughtUpAt } = this;
    if (this.active === null || caughtUpAt === null) return [];
    const lagMs = Math.max(0, this.deps.clock.now() - caughtUpAt);
    return [
      {
        name: "gateway_export_lag_seconds",
        help: "Seconds since everything that was booked was also exported.",
        value: lagMs / 1_000,
        together: "least",
      },
      {
        name: "gateway_export_files",
        help: "Files that were exported since start.",
        value: this.files,
        type: "counter",
      },
      {
        name: "gateway_export_rows",
        help: "Receipts, entries and events that were exported since start.",
        value: this.rows,
        type: "counter",
      },
    ];
  }

  private async configure(target: string | null): Promise<void> {
    await this.deps.store.configure(target, this.deps.clock.now());
  }

  private async round(active: ActiveTarget): Promise<number> {
    const { store, clock } = this.deps;
    const pollMs = Math.min(active.settings.every, POLL_MS);
    try {
      if (active.storage === null) {
        await this.configure(active.name);
        active.storage = this.deps.open(active.settings);
      }
      const now = clock.now();
      const claim = await store.claim(active.name, now, epochMs(now + LEASE_MS));
      if (claim !== null) await this.exportAll(active, claim);
      await this.readLag(active);
    } catch (error) {
      this.failed(error);
    }
    return pollMs;
  }

  private async readLag({ name }: ActiveTarget): Promise<void> {
    const cursors = await this.deps.store.cursors(name);
    this.caughtUpAt = epochMs(Math.min(...cursors.map(({ caughtUpAt }) => caughtUpAt)));
  }

  private async exportAll(active: ActiveTarget, first: ExportClaim): Promise<void> {
    const { store, clock, log } = this.deps;
    const caughtUp = new Map<ExportKind, EpochMs>();
    const work = { active, claim: first as ExportClaim | null, caughtUp };
    let problem: string | null = null;
    try {
      for (const cursor of await store.cursors(active.name)) await this.exportKind(cursor, work);
    } catch (error) {
      problem = String(error);
      log("export", { to: active.name, problem, attempt: first.failures + 1 });
    }
    const { claim } = work;
    // Another process has taken over.
    if (claim === null) return;
    const waitMs = problem === null ? active.settings.every : retryMs(claim.failures);
    await store.release(claim, { dueAt: epochMs(clock.now() + waitMs), problem, caughtUp });
  }

  private async exportKind(
    { kind, last, fileLast, fileRows }: ExportCursor,
    work: ExportWork,
  ): Promise<void> {
    const { store, clock, log } = this.deps;
    let after = last;
    if (fileLast !== null) {
      const rows = await readRows(store, clock, kind, { after, through: fileLast }, Number.POSITIVE_INFINITY);
      const deleted = fileRows! - rows.length;
      assert(deleted >= 0, `${rows.length} rows of ${kind} where a file of ${fileRows} was started`);
      // While the target was away for long, or was no target.
      if (deleted > 0)
        log("export", { problem: `${deleted} ${kind} were deleted before they were exported` });
      if (rows.length > 0) await this.put(exportFile(kind, rows), work);
      await this.finish(kind, after, { last: fileLast, rows: rows.length }, work);
      after = fileLast;
    }
    while (work.claim !== null && !this.rounds?.stopped) {
      const startedAt = clock.now();
      const through = await store.settledThrough(kind);
      if (through === null) return;
      const rows = await readRows(store, clock, kind, { after, through });
      if (rows.length === 0) {
        work.caughtUp.set(kind, startedAt);
        return;
      }
      const file = exportFile(kind, rows);
      work.claim = await store.begin(work.claim, { kind, last: after, file, until: this.lease() });
      await this.put(file, work);
      await this.finish(kind, after, file, work);
      after = file.last;
      await pause(clock, PAUSE_MS);
    }
  }

  private async put({ name, bytes }: ExportFile, { claim, active }: ExportWork): Promise<void> {
    if (claim === null) return;
    const put = active.storage!.put(name, await bytes()).then(() => true);
    if ((await atMost(this.deps.clock, PUT_MS, put)) !== true)
      throw new Error(`${name} was not taken within ${PUT_MS / 1_000} s`);
  }

  private async finish(kind: ExportKind, last: number, file: FileRows, work: ExportWork): Promise<void> {
    if (work.claim === null) return;
    work.claim = await this.deps.store.finish(work.claim, { kind, last, file, until: this.lease() });
    if (work.claim === null || file.rows === 0) return;
    this.files += 1;
    this.rows += file.rows;
  }

  private lease(): EpochMs {
    return epochMs(this.deps.clock.now() + LEASE_MS);
  }

  private failed(error: unknown): void {
    if (!this.rounds?.stopped) this.deps.log("export", { problem: String(error) });
  }
}

interface ActiveTarget {
  readonly settings: ExportSettings;
  readonly text: string;
  /** What the books call the target. */
  readonly name: string;
  storage: ExportStorage | null;
}

type FileRows = Pick<ExportFile, "last" | "rows">;

interface ExportWork {
  readonly active: ActiveTarget;
  /** Null once another process has taken over. */
  claim: ExportClaim | null;
  /** Kinds of which nothing was left, and since when. */
  readonly caughtUp: Map<ExportKind, EpochMs>;
}

export interface ExporterDeps {
  readonly store: Pick<
    SqlExportStore,
    "configure" | "claim" | "cursors" | "settledThrough" | "rows" | "begin" | "finish" | "release"
  >;
  readonly clock: Clock;
  readonly log: Log;
  /** What the configuration says, read at the start and after each reload. */
  readonly settings: () => ExportSettings | null;
  readonly open: (settings: ExportSettings) => ExportStorage;
}

const retryMs = (failures: number): number => Math.min(FIRST_RETRY_MS * 2 ** failures, MAX_RETRY_MS);

/** Whether it is this process's turn. */
const POLL_MS = 5_000;
/** Another process may take over after this. */
const LEASE_MS = 120_000;
/** A file that takes longer is put again. */
const PUT_MS = 60_000;
const FIRST_RETRY_MS = 5_000;
const MAX_RETRY_MS = 60_000;
/** Between files. */
const PAUSE_MS = 20;
