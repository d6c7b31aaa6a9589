import { cpus } from "node:os";

/** Tells when the machine has room for more processes than it has cores: many tests wait for disks, timers and other processes. */
export class Spare {
  private last = timesOfCores();

  /** What the cores did since this was asked last, from 0 to 1. */
  busy(): number {
    const now = timesOfCores();
    const [idle, whole] = [now.idle - this.last.idle, now.whole - this.last.whole];
    this.last = now;
    return whole === 0 ? 1 : 1 - idle / whole;
  }
}

export interface Load {
  readonly running: number;
  /** Without spare room, so many run. */
  readonly jobs: number;
  readonly busy: number;
  /** Taken by what runs. */
  readonly megabytes: number;
}

export const hasRoom = ({ running, jobs, busy, megabytes }: Load): boolean =>
  running < MAX_FOR_EACH * jobs && busy < MAX_BUSY && megabytes < MAX_MEGABYTES;

/** Tests that wait for something wait for a limited time only. */
const MAX_FOR_EACH = 2;
const MAX_BUSY = 0.8;
/** One more takes up to 600. */
const MAX_MEGABYTES = 900;

function timesOfCores(): { readonly idle: number; readonly whole: number } {
  let [idle, whole] = [0, 0];
  for (const { times } of cpus()) {
    idle += times.idle;
    whole += times.user + times.nice + times.sys + times.idle + times.irq;
  }
  return { idle, whole };
}
