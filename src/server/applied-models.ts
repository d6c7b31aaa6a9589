import type { ModelListAnswer, RestoredAnswer } from "../api/model-lists.ts";
import { checkModelList, type ListedChange } from "../config/model-list-check.ts";
import { MAX_SYNCED_MODELS, readSynced, type SyncedModel } from "../config/synced-models.ts";
import type { ModelList, ModelLists } from "../http/deps.ts";
import type { Bookkeeping } from "../store/books/bookkeeping.ts";
import type { ModelVersion } from "../store/nodes/fleet.ts";
import { type Clock, pause } from "../units/clock.ts";
import { invalidField, type Refusal, refuse } from "../units/errors/refusal.ts";
import { type Log, reportingOnce } from "../units/log.ts";
import { Rounds } from "../units/rounds.ts";
import type { ActiveConfig } from "./active-config.ts";
import type { NodeComparison } from "./node-comparison.ts";

/**
 * The models and prices of applied model lists. They are the store's: each process polls for a newer version every second
 * and puts it in force as a reload does, in one step. A request keeps the prices that it was admitted with.
 */
export class AppliedModels implements ModelLists {
  private number = 0;
  private rounds: Rounds | null = null;

  constructor(private readonly parts: AppliedModelsParts) {}

  /** Where other processes share the store, what they apply is put in force here. */
  follow(): void {
    const { books, clock, log } = this.parts;
    if (books.node === null) return;
    const poll = reportingOnce(
      () => this.catchUp(),
      (error) => log("models not read", { error }),
    );
    this.rounds = new Rounds(clock, POLL_MS, poll);
  }

  async stop(): Promise<void> {
    await this.rounds?.stop();
  }

  async apply({ source, rows, accept, apply }: ModelList): Promise<ModelListAnswer | Refusal> {
    await this.catchUp();
    const { active } = this.parts;
    const changes = checkModelList(active.config, rows);
    const unknown = accept.find(
      (id) => !changes.some(({ model, doubts }) => model === id && doubts.length > 0),
    );
    if (unknown !== undefined)
      return invalidField("accept", `Nothing was applied: the list has no doubtful model \`${unknown}\`.`);
    const accepted = apply ? changes.filter((change) => isAccepted(change, accept)) : [];
    if (accepted.length > 0) {
      const models = merged(active.synced, accepted);
      if (models.length > MAX_SYNCED_MODELS)
        return invalidField(
          "models",
          `Model lists may have ${MAX_SYNCED_MODELS} models in all. Nothing was applied.`,
        );
      const done = await this.add(source, this.number, models);
      if (!done) return overtaken();
    }
    return {
      version: this.number,
      applied: accepted.length > 0,
      unchanged: changes.filter(({ change }) => change === "unchanged").length,
      changes: changes.flatMap(({ row, change, ...shown }) =>
        change === "unchanged"
          ? []
          : {
              ...shown,
              change,
              differences: [...shown.differences],
              doubts: [...shown.doubts],
              applied: accepted.some((one) => one.row === row && row !== null),
            },
      ),
      pending_nodes: accepted.length > 0 ? await this.pendingNodes() : [],
    };
  }

  async undo(): Promise<RestoredAnswer | Refusal> {
    await this.catchUp();
    const { modelVersions } = this.parts.books;
    const present = await modelVersions.version(this.number);
    if (present === null || (present.previous === 0 && present.models === "[]"))
      return refuse(
        "invalid_request",
        "No model list is applied: the models are those of the configuration.",
      );
    const back = present.previous === 0 ? NONE : await modelVersions.version(present.previous);
    if (back === null)
      return refuse(
        "invalid_request",
        `Version ${present.previous} is too old to be kept. Apply a list instead.`,
      );
    const done = await this.add(`undo of version ${present.number}`, back.previous, readSynced(back.models));
    return done
      ? { version: this.number, restored: back.number, pending_nodes: await this.pendingNodes() }
      : overtaken();
  }

  private async add(source: string, previous: number, models: readonly SyncedModel[]): Promise<boolean> {
    const { books, clock } = this.parts;
    const number = this.number + 1;
    const version = { number, at: clock.now(), source, previous, models: JSON.stringify(models) };
    if (!(await books.modelVersions.add(version))) return false;
    await this.putInForce(version);
    return true;
  }

  /** What is not in force here yet. Before the port is open: what was applied before this process started. */
  async catchUp(): Promise<void> {
    const { modelVersions } = this.parts.books;
    const latest = await modelVersions.latest();
    if (latest <= this.number) return;
    const version = await modelVersions.version(latest);
    // Others may apply many in a row: the next poll finds the last.
    if (version !== null && version.number > this.number) await this.putInForce(version);
  }

  private async putInForce(version: ModelVersion): Promise<void> {
    const { active, log, comparison, onChanged } = this.parts;
    if (version.number <= this.number) return;
    this.number = version.number;
    const models = readSynced(version.models);
    active.applyModels(version.number, models);
    const { priceVersion } = active.config.catalog;
    log("models applied", {
      version: version.number,
      models: models.length,
      prices: priceVersion,
      source: version.source,
    });
    onChanged();
    await comparison.write();
  }

  /** Waits for nodes, which poll each second; returns those that have not applied it by then. */
  private async pendingNodes(): Promise<string[]> {
    const { clock, comparison } = this.parts;
    for (let poll = 0; poll < MAX_NODE_POLLS; poll++) {
      if ((await comparison.withOtherModels()).length === 0) return [];
      await pause(clock, NODES_MS);
    }
    return comparison.withOtherModels();
  }
}

interface AppliedModelsParts {
  readonly books: Pick<Bookkeeping, "modelVersions" | "node">;
  readonly active: ActiveConfig;
  readonly clock: Clock;
  readonly log: Log;
  /** With the other nodes. */
  readonly comparison: Pick<NodeComparison, "write" | "withOtherModels">;
  /** Other models are in force. */
  onChanged(): void;
}

const POLL_MS = 1_000;
/** How often the command checks whether all nodes have applied it. */
const NODES_MS = 100;
const MAX_NODE_POLLS = 30;

const NONE: ModelVersion = { number: 0, at: 0 as ModelVersion["at"], source: "", previous: 0, models: "[]" };

const overtaken = (): Refusal =>
  refuse(
    "invalid_request",
    "Another model list was applied at the same time, and this one was not. Look at the difference again.",
  );

function isAccepted({ change, row, doubts, model }: ListedChange, accept: readonly string[]): boolean {
  const isNews = row !== null && (change === "new" || change === "changed");
  return isNews && (doubts.length === 0 || accept.includes(model));
}

/** One row for each model at a host: the later one. */
function merged(present: readonly SyncedModel[], accepted: readonly ListedChange[]): SyncedModel[] {
  const rows = [...present, ...accepted.flatMap(({ row }) => row ?? [])];
  return [...new Map(rows.map((row) => [`${row.host} ${row.id} ${row.model}`, row])).values()];
}
