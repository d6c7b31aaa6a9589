import { type Config, linksOf } from "../config/config.ts";
import { configView } from "../config/config-view.ts";
import type { ChangedFields, ChangeLog } from "../customers/changes/change.ts";
import { changeStamp, withOrigin } from "../customers/changes/origin.ts";
import type { Clock } from "../units/clock.ts";
import { hashSecret } from "../units/secret-hash.ts";

/**
 * Writes each reload of the configuration into the log of changes, before it is in force. An operator who asks for it is
 * its author; otherwise a signal is. Workers that reload the same file together write one row.
 */
export class ReloadLog {
  private last: ConfigFields;

  constructor(
    private readonly changes: ChangeLog,
    private readonly clock: Pick<Clock, "now">,
    config: Config,
  ) {
    this.last = viewOf(config);
  }

  async append(config: Config): Promise<void> {
    const [before, after] = [this.last, viewOf(config)];
    const names = Object.keys({ ...before, ...after }).filter((name) => !isSame(before[name], after[name]));
    const version = hashSecret(JSON.stringify(after)).slice(0, VERSION_DIGITS);
    const entry = {
      action: "configuration.reloaded",
      subject: version,
      balance: null,
      before: picked(names, before, after),
      after: picked(names, after, before),
    } as const;
    const append = () => this.changes.append(entry, version);
    await (changeStamp() === null ? withOrigin({ stamp: () => this.bySignal() }, append) : append());
    this.last = after;
  }

  private bySignal() {
    const by = { kind: "system", id: "signal", name: "SIGHUP" } as const;
    return { id: "chg_" as const, at: this.clock.now(), by, network: "", request: "" };
  }
}

type ConfigFields = Readonly<Record<string, unknown>>;

const viewOf = (config: Config): ConfigFields => configView(config, linksOf(config, ""));

const isSame = (one: unknown, other: unknown): boolean => JSON.stringify(one) === JSON.stringify(other);

/** Ids of hosts and models that the other does not have in the same words. */
const picked = (names: readonly string[], fields: ConfigFields, other: ConfigFields): ChangedFields =>
  Object.fromEntries(names.map((name) => [name, shownValue(fields[name], other[name])]));

function shownValue(value: unknown, other: unknown): unknown {
  if (Array.isArray(value) && value.some((row) => typeof row?.id === "string")) {
    const known = new Set(Array.isArray(other) ? other.map((row) => JSON.stringify(row)) : []);
    return value.flatMap((row) => (known.has(JSON.stringify(row)) ? [] : [row.id])).slice(0, MAX_IDS);
  }
  const text = JSON.stringify(value ?? null);
  return text.length <= MAX_SHOWN ? (value ?? null) : `sha256:${hashSecret(text).slice(0, VERSION_DIGITS)}`;
}

const VERSION_DIGITS = 16;
const MAX_IDS = 100;
const MAX_SHOWN = 500;
