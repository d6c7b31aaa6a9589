import { expect, test } from "bun:test";
import { HostSlots, type Slot } from "../../../src/hosts/slots/host-slots.ts";
import { SlotPool } from "../../../src/hosts/slots/slot-pool.ts";
import { ManualClock } from "../../fakes/clock.ts";
import { Random } from "../../sim/random.ts";

const HOST = { id: "h", maxConcurrent: 0 };
const STAYS = new AbortController().signal;
const SENDER = { balanceId: "balance", keyId: "key", isFree: false };
const turn = () => new Promise((resolve) => setImmediate(resolve));

/**
 * Workers and the book between them. What one says to another arrives later, in its order, when `deliver`
 * takes it.
 */
class Fleet {
  readonly clock = new ManualClock();
  readonly lines: (() => void)[][];
  readonly workers: HostSlots[];
  readonly book: SlotPool;
  messages = 0;
  private readonly lives: number[];

  constructor(
    readonly most: number,
    readonly size: number,
    private readonly paid: ReadonlySet<string> = new Set(),
  ) {
    this.lives = Array.from({ length: size }, () => 0);
    this.lines = Array.from({ length: size * 2 }, () => []);
    this.book = new SlotPool(most, size, {
      give: (worker, count) =>
        this.enqueue(size + worker, worker, () => this.workers[worker]!.given("h", most, count)),
      recall: (worker, count) =>
        this.enqueue(size + worker, worker, () => this.workers[worker]!.recalled("h", most, count)),
    });
    this.workers = Array.from({ length: size }, (_, worker) => this.begin(worker));
  }

  get host() {
    return { ...HOST, maxConcurrent: this.most };
  }

  restart(worker: number): void {
    this.lives[worker]! += 1;
    this.book.ended(worker);
    this.workers[worker] = this.begin(worker);
  }

  deliver(line: number): void {
    this.lines[line]!.shift()?.();
  }

  async deliverAll(): Promise<void> {
    while (this.lines.some((line) => line.length > 0)) {
      for (let line = 0; line < this.lines.length; line++) this.deliver(line);
      await turn();
    }
  }

  private begin(worker: number): HostSlots {
    const slots = new HostSlots(this.clock, () => ({
      request: (count) => this.enqueue(worker, worker, () => this.book.requested(worker, count)),
      giveBack: (count) => this.enqueue(worker, worker, () => this.book.returned(worker, count)),
    }));
    slots.prepare([this.host], this.paid);
    return slots;
  }

  /** What is for or from a process that has ended is lost with it. */
  private enqueue(line: number, worker: number, arrive: () => void): void {
    const life = this.lives[worker];
    this.messages += 1;
    this.lines[line]!.push(() => {
      if (this.lives[worker] === life) arrive();
    });
  }
}

test.each<[most: number, workers: number]>([
  [1, 2],
  [1, 4],
  [2, 3],
  [7, 2],
  [50, 4],
])(
  "of %p places, %p workers never use more together, and a worker that waits gets one",
  async (most, size) => {
    for (let seed = 1; seed <= 20; seed++) {
      const random = new Random(seed);
      const fleet = new Fleet(most, size);
      const inUse = fleet.workers.map((): Slot[] => []);
      const used = () => inUse.reduce((sum, slots) => sum + slots.length, 0);
      let served = 0;
      for (let step = 0; step < 600; step++) {
        const worker = random.below(size);
        const chance = random.below(100);
        if (chance < 30) {
          const slots = fleet.workers[worker]!;
          void slots.wait(fleet.host, SENDER, 1e9, STAYS).then((slot) => {
            // Nobody receives anything from a process that has ended meanwhile.
            if (slots !== fleet.workers[worker]) return;
            served += 1;
            inUse[worker]!.push(slot!);
          });
        } else if (chance < 60)
          inUse[worker]!.splice(random.below(inUse[worker]!.length || 1), 1)[0]?.release();
        else if (chance < 61) {
          inUse[worker] = [];
          fleet.restart(worker);
        } else fleet.deliver(random.below(size * 2));
        await turn();
        expect(used()).toBeLessThanOrEqual(most);
      }
      // Everybody finishes, and all who still wait are served.
      for (let round = 0; round < 5_000 && fleet.workers.some((slots) => waitingAt(slots) > 0); round++) {
        await fleet.deliverAll();
        for (const slots of inUse) for (const slot of slots.splice(0)) slot.release();
        expect(used()).toBeLessThanOrEqual(most);
      }
      expect(fleet.workers.map(waitingAt)).toEqual(fleet.workers.map(() => 0));
      expect(served).toBeGreaterThan(most);
    }
  },
  60_000,
);

const waitingAt = (slots: HostSlots): number =>
  [...slots.loads()].reduce((sum, line) => sum + line.waiting, 0);

test("a single place goes back and forth between two workers that both always have somebody waiting", async () => {
  const fleet = new Fleet(1, 2);
  await fleet.deliverAll();
  const served = [0, 0];
  const serveForever = async (worker: number) => {
    while (served[worker]! < 50) {
      const slot = await fleet.workers[worker]!.wait(fleet.host, SENDER, 1e9, STAYS);
      served[worker]! += 1;
      await turn();
      slot!.release();
    }
  };
  const both = [serveForever(0), serveForever(0), serveForever(1), serveForever(1)];
  while (served[0]! < 50 && served[1]! < 50) await fleet.deliverAll().then(turn);
  expect(Math.min(...served)).toBeGreaterThan(20);
  while (served.some((count) => count < 50)) await fleet.deliverAll().then(turn);
  await Promise.all(both);
});

test("free requests at one worker leave half of the places to paid ones, which another worker gets", async () => {
  const fleet = new Fleet(4, 2, new Set(["h"]));
  await fleet.deliverAll();
  const free = { ...SENDER, isFree: true };
  let taken = 0;
  for (let n = 0; n < 10; n++)
    void fleet.workers[0]!.wait(fleet.host, free, 1e9, STAYS).then(() => void (taken += 1));
  await fleet.deliverAll();
  expect(taken).toBe(2);
  const paid = [0, 1].map(() => fleet.workers[1]!.wait(fleet.host, SENDER, 1e9, STAYS));
  await fleet.deliverAll();
  expect((await Promise.all(paid)).every((slot) => slot !== null)).toBe(true);
  expect(taken).toBe(2);
});

test("one worker may have all places while the others need none", async () => {
  const fleet = new Fleet(20, 4);
  await fleet.deliverAll();
  const slots = Array.from({ length: 20 }, () => fleet.workers[2]!.wait(fleet.host, SENDER, 1e9, STAYS));
  await fleet.deliverAll();
  expect((await Promise.all(slots)).every((slot) => slot !== null)).toBe(true);
});

test("a worker is asked for what others lack once, and not again for what it was asked for before", () => {
  const messages: string[] = [];
  const book = new SlotPool(4, 3, {
    give: (worker, count) => void messages.push(`give ${worker}: ${count}`),
    recall: (worker, count) => void messages.push(`recall ${worker}: ${count}`),
  });
  const after = (act: () => void): string[] => {
    act();
    return messages.splice(0);
  };
  expect(after(() => book.requested(1, 4))).toEqual(["give 1: 4"]);
  expect(after(() => book.requested(2, 1))).toEqual(["recall 1: 1"]);
  expect(after(() => book.requested(3, 1))).toEqual(["recall 1: 1"]);
  // Nobody knows which of them uses its places, so the second is asked as well for what the third lacks.
  expect(after(() => book.returned(1, 1))).toEqual(["give 2: 1", "recall 2: 1"]);
  expect(after(() => book.returned(1, 1))).toEqual(["give 3: 1"]);
  // The second owes its one already.
  expect(after(() => book.requested(3, 2))).toEqual(["recall 1: 2"]);
});

test("below the limit, next to nothing is said", async () => {
  const fleet = new Fleet(100, 2);
  await fleet.deliverAll();
  for (let request = 0; request < 1_000; request++) {
    const worker = fleet.workers[request % 2]!;
    const open = Array.from({ length: 10 }, () => worker.take(fleet.host));
    await fleet.deliverAll();
    for (const slot of open) slot?.release();
  }
  expect(fleet.messages).toBeLessThan(20);
});

test("a reload that lowers the limit takes back what is not used, and the rest as it ends", async () => {
  const messages: string[] = [];
  const slots = new HostSlots(new ManualClock(), (_, most) => ({
    request: (count) => void messages.push(`${most}: ask ${count}`),
    giveBack: (count) => void messages.push(`${most}: back ${count}`),
  }));
  const before = { id: "h", maxConcurrent: 5 };
  slots.prepare([before], new Set());
  slots.given("h", 5, 3);
  const slot = slots.take(before)!;
  slots.prepare([{ id: "h", maxConcurrent: 2 }], new Set());
  slot.release();
  // It was on its way.
  slots.given("h", 5, 1);
  expect(messages).toEqual(["5: ask 1", "5: back 2", "2: ask 1", "5: back 1", "5: back 1"]);
});

test("a reload that drops a host gives its places back and forgets it, once nothing is under way there", () => {
  const messages: string[] = [];
  const slots = new HostSlots(new ManualClock(), (host) => ({
    request: (count) => void messages.push(`${host}: ask ${count}`),
    giveBack: (count) => void messages.push(`${host}: back ${count}`),
  }));
  const [kept, dropped, busy] = ["kept", "dropped", "busy"].map((id) => ({ id, maxConcurrent: 5 }));
  slots.prepare([kept!, dropped!, busy!], new Set());
  for (const id of ["kept", "dropped", "busy"]) slots.given(id, 5, 2);
  const slot = slots.take(busy!)!;
  messages.length = 0;
  const listed = () => [...slots.loads()].map(({ host, inFlight }) => `${host} ${inFlight}`);
  slots.prepare([kept!], new Set());
  expect(messages).toEqual(["dropped: back 2"]);
  expect(listed()).toEqual(["kept 0", "busy 1"]);
  slot.release();
  slots.prepare([kept!], new Set());
  expect(messages).toEqual(["dropped: back 2", "busy: back 2"]);
  expect(listed()).toEqual(["kept 0"]);
  // It was on its way.
  slots.given("dropped", 5, 1);
  expect(messages.at(-1)).toBe("dropped: back 1");
});

test("a host without a limit of the operator's is each worker's own", () => {
  const slots = new HostSlots(new ManualClock(), () => {
    throw new Error("nobody is asked");
  });
  expect(slots.take({ id: "h" })).not.toBeNull();
});
