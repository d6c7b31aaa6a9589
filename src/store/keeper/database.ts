import type { Database } from "bun:sqlite";
import { StoreContended } from "../../units/errors/bookkeeping.ts";
import { refused } from "../../units/errors/refusal.ts";
import type { NotedResult, Steps, WriteOptions, WrittenSql } from "../sql/statement.ts";
import { SqliteStatements } from "../sqlite/statements.ts";
import type { KeeperOperations } from "./operations.ts";
import type { RehearsedStatement } from "./rehearsal.ts";
import { ChangeTurns } from "./turns.ts";

/** SQLite for a node: read in place, and written by its keeper. */
export class KeeperDatabase extends SqliteStatements {
  private readonly turns = new ChangeTurns();

  constructor(
    db: Database,
    private readonly keeper: Pick<KeeperOperations, "perform">,
    /** Resolves when no node acts on what was before this change. */
    readonly acknowledged: (version: number) => Promise<void> = async () => {},
  ) {
    super(db);
  }

  override async write<Result>(
    steps: () => Steps<Result>,
    { committed }: WriteOptions<Result> = {},
  ): Promise<Result> {
    const result = await this.change(function* () {
      return { result: yield* steps(), changes: [] };
    });
    committed?.(result);
    return result;
  }

  override async change<Result>(steps: () => Steps<NotedResult<Result>>): Promise<Result> {
    const turn: { end: (() => void) | null } = { end: null };
    try {
      return await this.performed(steps, turn);
    } finally {
      turn.end?.();
    }
  }

  /**
   * Changes that read the same row, of which each finds it changed by the other, take turns from then on: those of one
   * node would otherwise compete with each other as well as with the other nodes.
   */
  private async performed<Result>(
    steps: () => Steps<NotedResult<Result>>,
    turn: { end: (() => void) | null },
  ): Promise<Result> {
    let told: Answers = [];
    for (let round = 0; round < MAX_ROUNDS; round++) {
      const rehearsed = this.rehearse(steps, told);
      if (rehearsed === null) {
        told = [];
        continue;
      }
      const { statements, end } = rehearsed;
      // Nothing was written.
      if (end !== null && refused(end.result)) return end.result;
      const contested =
        turn.end === null ? statements.find((one) => this.turns.has(contestedBy(one))) : undefined;
      if (contested !== undefined) {
        turn.end = await this.nextTurn(contested);
        told = [];
        continue;
      }
      const performed = await this.keeper.perform(statements, end?.changes ?? []);
      if ("version" in performed) {
        if (performed.version !== null) await this.acknowledged(performed.version);
        return end!.result;
      }
      const { at, rows } = performed;
      if (turn.end === null && isFirstRead(statements, at)) {
        turn.end = await this.nextTurn(statements[at]!);
        told = [];
        continue;
      }
      // Where others came between what the keeper had told before, all of it may be old.
      told = at < told.length ? [] : [...statements.slice(0, at).map(({ rows }) => rows!), rows];
    }
    throw new StoreContended(`other processes changed the same rows ${MAX_ROUNDS} times`);
  }

  private async nextTurn(statement: RehearsedStatement): Promise<() => void> {
    const end = await this.turns.take(contestedBy(statement));
    if (end === null) throw new StoreContended("too many requests wait to change the same rows");
    return end;
  }

  /**
   * As far as the answers are known: those that the keeper told, then those that the database has here. Null where these
   * do not fit together.
   */
  private rehearse<Result>(steps: () => Steps<Result>, told: Answers): Rehearsal<Result> | null {
    const statements: RehearsedStatement[] = [];
    const rehearse = (): Rehearsal<Result> => {
      const taken = steps();
      let step = taken.next();
      while (!step.done) {
        const statement = step.value.written(() => "?");
        const rows = told[statements.length] ?? this.answerHere(statement);
        statements.push({ ...statement, rows });
        if (rows === null) return { statements, end: null };
        step = taken.next(rows);
      }
      return { statements, end: step.value };
    };
    try {
      return this.db.transaction(rehearse)();
    } catch (error) {
      if (told.length > 0) return null;
      throw error;
    }
  }

  private answerHere(statement: WrittenSql): readonly unknown[] | null {
    if (READS.test(statement.text)) return this.answer(statement);
    return ANSWERS.test(statement.text) ? null : [];
  }
}

/** By the place of their statement. */
type Answers = readonly (readonly unknown[])[];

interface Rehearsal<Result> {
  readonly statements: readonly RehearsedStatement[];
  /** Null where it goes no further than to a statement that only the keeper can answer. */
  readonly end: Result | null;
}

/** Whether others have changed what it reads: behind a statement that writes, it may be the transaction's own change. */
const isFirstRead = (statements: readonly RehearsedStatement[], at: number): boolean =>
  statements.slice(0, at + 1).every(({ text }) => READS.test(text));

/** Its rows, by the ids that it names: the numbers among its values are times, which differ in every request. */
const contestedBy = ({ text, values }: RehearsedStatement): string =>
  `${text} ${JSON.stringify(values.filter((value) => typeof value === "string"))}`;

const READS = /^\s*SELECT\b/;
const ANSWERS = /\bRETURNING\b/;
/** One for each statement that only the keeper answers, of which a page of marks has 50, and one for each time that others came between. */
const MAX_ROUNDS = 100;
