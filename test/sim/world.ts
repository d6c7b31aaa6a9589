import { epochMs } from "../../src/units/clock.ts";
import { VirtualClock } from "./clock.ts";
import { Random } from "./random.ts";

/**
 * One seed: time, chance, who acts in it and who judges what comes of that. What a scenario simulates is one or the
 * other, so each can be read, and put into another world, by itself.
 */
export class World<What extends string = string> {
  readonly random: Random;
  readonly time = new VirtualClock(NOON);
  /** What has happened. */
  readonly counts: Record<What, number>;
  private readonly players: Player[] = [];
  private readonly auditors: Auditor[] = [];
  private failure: { readonly error: unknown } | null = null;

  constructor(
    private readonly seed: number,
    counts: readonly What[],
    /** Resolves once whatever can go on has gone on. */
    readonly settled: () => Promise<void>,
  ) {
    this.random = new Random(seed);
    this.counts = Object.fromEntries(counts.map((what) => [what, 0])) as Record<What, number>;
  }

  /** Chance of its own for what is decided apart, so that nothing else happens differently for it. */
  apart(number: number): Random {
    return new Random(this.seed + SALTS[number]!);
  }

  /** Acts after those who were there before. */
  joins<One extends Player>(player: One): One {
    this.players.push(player);
    return player;
  }

  judgedBy<One extends Auditor>(auditor: One): One {
    this.auditors.push(auditor);
    return auditor;
  }

  /** Everybody acts in each step; in the end, what they have started ends, and is judged. */
  async run(steps: number, onStep: (step: number, of: number) => void = () => {}): Promise<void> {
    try {
      for (const player of this.players) await player.begin?.();
      for (let step = 0; step < steps; step++) {
        for (const player of this.players) await player.act();
        this.watch();
        onStep(step, steps);
      }
      for (const player of this.players) await player.end?.();
      for (const auditor of this.auditors) await auditor.judge?.();
    } finally {
      for (const player of this.players) player.close?.();
    }
  }

  /** Goes on next to everything else. Where it fails, so does the world. */
  spawn(work: Promise<unknown>): void {
    work.catch((error) => {
      this.failure ??= { error };
    });
  }

  watch(): void {
    if (this.failure !== null) throw this.failure.error;
    for (const auditor of this.auditors) auditor.watch?.();
  }

  /** Lets time pass, timer by timer, and whatever each sets off. */
  async pass(ms: number): Promise<void> {
    const untilMs = this.time.elapsedMs() + ms;
    do {
      await this.settled();
      this.watch();
    } while (this.time.step(untilMs));
  }

  /** The same for timers that set off nothing that waits. */
  skip(ms: number): void {
    const untilMs = this.time.elapsedMs() + ms;
    while (this.time.step(untilMs));
  }
}

/** Clients, owners, operators, hosts, networks: does something in each step. */
export interface Player {
  begin?(): void | Promise<void>;
  act(): void | Promise<void>;
  /** Ends what it has started, once there are no more steps. */
  end?(): void | Promise<void>;
  /** Gives back what the machine has lent it, whatever has failed. */
  close?(): void;
}

/** Throws where something is wrong. */
export interface Auditor {
  /** After each step, and after whatever happens in one. */
  watch?(): void;
  /** Once everything has ended. */
  judge?(): void | Promise<void>;
}

/** Every promise that can go on has gone on. */
export const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** The same where promises wait for nothing but each other. */
export async function promisesSettled(): Promise<void> {
  for (let turn = 0; turn < 60; turn++) await null;
}

class AuditFailure extends Error {
  override name = "AuditFailure";
}

export function check(condition: boolean, what: string): asserts condition {
  if (!condition) throw new AuditFailure(what);
}

const NOON = epochMs(Date.UTC(2026, 10, 21, 12));
const SALTS = [
  0, 1_000_000_007, 2_000_000_011, 3_000_000_019, 4_000_000_007, 5_000_000_029, 6_000_000_041, 7_000_000_003,
  8_000_000_009, 9_000_000_011, 10_000_000_019, 11_000_000_027, 12_000_000_029,
];
