import { stat } from "node:fs/promises";
import type { Catalog, HostKey } from "../catalog/catalog.ts";
import { readKeyFile } from "../config/host-keys.ts";
import type { Clock, Timer } from "../units/clock.ts";
import type { Log } from "../units/log.ts";

/**
 * Watches the files that hold keys of hosts. It compares size, time and inode every second, because events are lost where
 * a file is mounted or replaced by a link, as Kubernetes does with secrets. New requests carry the new key; those that
 * were sent go on. What cannot be read leaves the last key in place and is logged once.
 */
export class KeyFiles {
  private readonly known = new WeakMap<HostKey, Seen>();
  private watched: readonly WatchedKey[] = [];
  private timer: Timer | null = null;

  constructor(
    private readonly clock: Pick<Clock, "after">,
    private readonly catalog: () => Pick<Catalog, "hosts">,
    private readonly log: Log,
  ) {}

  /** Again after each reload; without files, nothing runs. */
  watch(): void {
    this.stop();
    this.watched = this.keys();
    if (this.watched.length > 0) this.pollLater(this.watched);
  }

  stop(): void {
    this.watched = [];
    this.timer?.cancel();
    this.timer = null;
  }

  private pollLater(keys: readonly WatchedKey[]): void {
    this.timer = this.clock.after(POLL_MS, async () => {
      await this.poll(keys);
      if (this.watched === keys) this.pollLater(keys);
    });
  }

  private keys(): WatchedKey[] {
    return [...this.catalog().hosts.values()].flatMap(({ id, keys = [] }) =>
      keys.filter(({ from }) => from === "file").map((key) => ({ host: id, key })),
    );
  }

  /** Never rejects. */
  private async poll(keys: readonly WatchedKey[]): Promise<void> {
    for (const { host, key } of keys) {
      const state = await stateOf(key.name);
      const seen = this.known.get(key);
      if (seen?.state === state) continue;
      const read = readKeyFile(key.name);
      const about = { host, key: key.name };
      if ("problem" in read) {
        if (seen?.problem !== read.problem)
          this.log("host key file", { ...about, problem: read.problem, next: KEPT });
        // Read again next time: it may be in the middle of being written.
        this.known.set(key, { state: null, problem: read.problem });
        continue;
      }
      this.known.set(key, { state, problem: null });
      if (read.text === key.secret.text) continue;
      key.secret.previous = key.secret.text;
      key.secret.text = read.text;
      this.log("host key replaced", about);
    }
  }
}

interface WatchedKey {
  readonly host: string;
  readonly key: HostKey;
}

interface Seen {
  readonly state: string | null;
  /** What was logged of it. */
  readonly problem: string | null;
}

async function stateOf(path: string): Promise<string> {
  try {
    const { mtimeMs, ctimeMs, size, ino } = await stat(path);
    return [mtimeMs, ctimeMs, size, ino].join(" ");
  } catch (error) {
    return String((error as NodeJS.ErrnoException).code);
  }
}

const POLL_MS = 1_000;
const KEPT = "The last key stays in use. Let the gateway's user read the file, with one key in it.";
