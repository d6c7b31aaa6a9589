import type { SurfaceName } from "../catalog/catalog.ts";
import type { Keyring } from "../customers/keys/keyring.ts";
import type { UnpaidRequests } from "../ledger/limits/unpaid-allowance.ts";
import type { SpendableCredit } from "../ledger/spendable-credit.ts";
import type { Clock, Timer } from "../units/clock.ts";
import { type Refusal, refuse, refused } from "../units/errors/refusal.ts";
import type { BalanceId } from "../units/id.ts";
import { idempotencyKeyOf } from "../units/idempotency-key.ts";
import type { GenerationAnswer, GenerationCall, StreamedAnswer, WholeAnswer } from "./answer.ts";
import { type Remembered, RepeatRoom } from "./idempotency-memory.ts";
import { unpaidRefusal } from "./refusals.ts";
import { SharedStream } from "./shared-stream.ts";

/**
 * Requests that name an `Idempotency-Key`, so that a client may send them again: the first is answered to its
 * end, also where its client leaves, and each further one of the same API key, or its rotations, gets the same answer, from
 * its first byte. One call, one receipt, one charge. An answer that is an error, or a stream that broke off and
 * was not charged, is forgotten at its end: the next request is a new one.
 *
 * All of that is in memory, and ends with the process. One of several workers answers for a key, and the
 * others forward to it.
 */
export class Repeats {
  private readonly known = new Map<string, RepeatedRequest>();
  private readonly rooms = new Map<BalanceId, RepeatRoom>();
  private readonly paid = new RepeatRoom(ALL_PAID);
  private readonly unpaid = new RepeatRoom(ALL_UNPAID);
  /** Requests that have ended, in that order. */
  private readonly ended = new Set<RepeatedRequest>();
  private timer: Timer | null = null;
  private isLeaving = false;

  constructor(private readonly deps: RepeatsDeps) {}

  /**
   * Requests that have not ended; and what the rooms count beyond the requests that are remembered, which nobody would
   * ever give back.
   */
  get inUse(): { readonly open: number; readonly lost: number; readonly lostBytes: number } {
    const { known, ended, paid, unpaid } = this;
    let bytes = 0;
    for (const request of known.values()) bytes += request.bytes;
    return {
      open: known.size - ended.size,
      lost: paid.count + unpaid.count - known.size,
      lostBytes: paid.bytes + unpaid.bytes - bytes,
    };
  }

  answer(surface: SurfaceName, call: GenerationCall): Promise<GenerationAnswer | Refusal> {
    const key = idempotencyKeyOf(call.headers);
    return key === null ? this.deps.generate(surface, call) : this.answerOnce(surface, call, key);
  }

  /**
   * For another worker, which was asked. Null where it is not known and nothing is started: because this worker is on its
   * way out, or was only asked for what it keeps.
   */
  async answerPassed(surface: SurfaceName, call: GenerationCall, ifKept = false): PassedAnswer {
    const request = await this.keyed(surface, call, idempotencyKeyOf(call.headers) ?? "");
    if (request === null) return ifKept ? null : this.deps.generate(surface, call);
    if (refused(request)) return request;
    if (this.known.has(request.id)) return this.answerHere(request);
    if (ifKept || this.isLeaving) return null;
    const elsewhere = await this.deps.peers?.kept(request);
    return elsewhere ?? this.answerHere(request);
  }

  /** Begins nothing more for other workers. */
  leave(): void {
    this.isLeaving = true;
  }

  /** At the end of the process. */
  stop(): void {
    this.timer?.cancel();
  }

  private async answerOnce(
    surface: SurfaceName,
    call: GenerationCall,
    key: string,
  ): Promise<GenerationAnswer | Refusal> {
    const request = await this.keyed(surface, call, key);
    if (request === null) return this.deps.generate(surface, call);
    if (refused(request)) return request;
    const elsewhere = this.known.has(request.id) ? null : await this.deps.peers?.answer(request);
    return elsewhere ?? this.answerHere(request);
  }

  /** Null where the key means nothing. */
  private async keyed(
    surface: SurfaceName,
    call: GenerationCall,
    key: string,
  ): Promise<KeyedRequest | Refusal | null> {
    const { deps } = this;
    if (!FORM.test(key)) return malformed();
    const holder = await deps.keyring.identify(call.secret, deps.clock.now());
    // An invalid key is refused by `generate`. A large body that nobody paid for is not even compared.
    if (holder === null || holder.balance.suspended !== null || call.isUnpaid) return null;
    const balance = holder.balance.id;
    // A sibling may be allowed other models and budgets, and numbers its own requests.
    const id = `${holder.key.rotationId} ${key}`;
    return { id, balance, pays: await pays(balance, deps.spendable), surface, call };
  }

  /** Awaits nothing before the request is known. */
  private answerHere(request: KeyedRequest): Promise<GenerationAnswer | Refusal> | Refusal {
    const { surface, call } = request;
    const body = fingerprint(surface, call.body);
    const known = this.known.get(request.id);
    if (known === undefined) return this.begin(request, body);
    const unpaid = unpaidRefusal(request.balance, call, this.deps.unpaidRequests);
    if (unpaid !== null) return unpaid;
    return known.body === body ? known.answer(call.signal, true) : otherBody();
  }

  private begin(
    { id, balance, pays, surface, call }: KeyedRequest,
    body: string,
  ): Promise<GenerationAnswer | Refusal> | Refusal {
    const room =
      this.rooms.get(balance) ??
      (pays ? new RepeatRoom(OF_PAYER, this.paid) : new RepeatRoom(OF_OTHER, this.unpaid));
    if (!room.enter()) return tooManyOpen();
    this.rooms.set(balance, room);
    const request: RepeatedRequest = new RepeatedRequest(body, room, {
      ended: () => this.endedNow(request),
      forgotten: () => {
        this.ended.delete(request);
        this.known.delete(id);
        if (room.isEmpty && this.rooms.get(balance) === room) this.rooms.delete(balance);
      },
    });
    this.known.set(id, request);
    request.begin(this.deps.generate(surface, ofNobody(call)));
    return request.answer(call.signal, false);
  }

  private endedNow(request: RepeatedRequest): void {
    request.dueMs = this.deps.clock.elapsedMs() + KEPT_MS;
    this.ended.add(request);
    this.wakeForOldest();
  }

  private wakeForOldest(): void {
    const [oldest] = this.ended;
    if (this.timer !== null || oldest === undefined) return;
    const { clock } = this.deps;
    this.timer = clock.after(Math.max(0, oldest.dueMs - clock.elapsedMs()), () => {
      this.timer = null;
      const nowMs = clock.elapsedMs();
      for (const request of this.ended) {
        if (request.dueMs > nowMs) break;
        request.forget();
      }
      this.wakeForOldest();
    });
  }
}

/** False while the store, which alone may know, is away. */
async function pays(balance: BalanceId, spendable: Pick<SpendableCredit, "of">): Promise<boolean> {
  try {
    return (await spendable.of(balance)) > 0;
  } catch {
    return false;
  }
}

export interface RepeatsDeps {
  readonly clock: Pick<Clock, "now" | "elapsedMs" | "after">;
  generate(surface: SurfaceName, call: GenerationCall): Promise<GenerationAnswer>;
  readonly keyring: Pick<Keyring, "identify">;
  readonly spendable: Pick<SpendableCredit, "of">;
  readonly unpaidRequests: Pick<UnpaidRequests, "waitS">;
  /** Null where there are no other workers. */
  readonly peers: RepeatPeers | null;
}

export interface RepeatPeers {
  /** What the worker that answers for the key says; null where that is this one, and nobody answered in its place. */
  answer(request: KeyedRequest): PassedAnswer;
  /** What those say that answered in this one's place while it was away; null where they keep nothing of it. */
  kept(request: KeyedRequest): PassedAnswer;
}

/** Null where another worker did nothing. */
export type PassedAnswer = Promise<GenerationAnswer | Refusal | null>;

/** A request that names a key, of a sender that is authenticated and not suspended. */
export interface KeyedRequest {
  /** Names the API key's chain of rotations, and the request within it. */
  readonly id: string;
  readonly balance: BalanceId;
  readonly pays: boolean;
  readonly surface: SurfaceName;
  /** Has the prompt: code that waits for the end of an answer keeps none of it. */
  readonly call: GenerationCall;
}

/** A request and its answer, for as long as it can be repeated. */
class RepeatedRequest implements Remembered {
  /** On the clock's `elapsedMs`, once it has ended. */
  dueMs = Number.POSITIVE_INFINITY;
  private outcome!: Promise<Pick<GenerationAnswer, "status" | "headers">>;
  private whole: WholeAnswer | null = null;
  private stream: SharedStream | null = null;
  private isKept = true;
  /** Clients that wait for its beginning. */
  private waiting = 0;
  bytes = 0;

  constructor(
    readonly body: string,
    private readonly room: RepeatRoom,
    private readonly events: { ended(): void; forgotten(): void },
  ) {}

  begin(generating: Promise<GenerationAnswer>): void {
    this.outcome = generating.then((answer) => {
      if (answer.kind === "whole") this.keep(answer);
      else this.share(answer);
      const { status, headers } = answer;
      return { status, headers };
    });
  }

  async answer(signal: AbortSignal, isRepeat: boolean): Promise<GenerationAnswer | Refusal> {
    this.waiting += 1;
    const { status, headers: first } = await this.outcome;
    this.waiting -= 1;
    const { stream, whole } = this;
    const headers = isRepeat ? { ...first, ...REPEATED } : first;
    const reader = stream?.canBegin === true ? stream.reader(status, headers, signal) : null;
    // Requests that waited for its beginning get it, whether there is room to keep it or not.
    if (!this.isKept && this.waiting === 0) this.whole = null;
    stream?.shrink();
    return reader ?? (whole === null ? isGone(first) : { ...whole, headers });
  }

  letGo(): void {
    this.isKept = false;
    if (this.waiting === 0) this.whole = null;
    this.room.answerIsGone(this);
    // Gives its room back once those that read it have had it.
    if (this.stream === null) this.giveBack();
    else this.stream.letGo();
  }

  forget(): void {
    this.letGo();
    this.room.leave(this);
    this.events.forgotten();
  }

  private keep(answer: WholeAnswer): void {
    this.whole = answer;
    // Nobody would want an error again.
    const isReusable = answer.status === 200;
    this.isKept = isReusable && this.take(answer.body.length);
    if (isReusable) this.end();
    else this.forget();
  }

  private share(answer: StreamedAnswer): void {
    const room = { take: (bytes: number) => this.take(bytes), giveBack: () => this.giveBack() };
    this.stream = new SharedStream(room, () => this.waiting);
    void answer.run(this.stream).then(() => {
      if (answer.cameToNothing === true) this.forget();
      else this.end();
    });
  }

  private end(): void {
    this.room.hasEnded(this);
    this.events.ended();
  }

  private take(bytes: number): boolean {
    if (!this.room.take(bytes)) return false;
    this.bytes += bytes;
    return true;
  }

  private giveBack(): void {
    this.room.giveBack(this.bytes);
    this.bytes = 0;
  }
}

/** The same call, which goes on when its client leaves. */
function ofNobody(call: GenerationCall): GenerationCall {
  const { secret, headers, body, isUnpaid } = call;
  const blocks = call.blocks();
  return { secret, headers, body, isUnpaid, blocks: () => blocks, signal: new AbortController().signal };
}

/** Two bodies with the same one are the same, but for a chance of one in 10¹⁹ that its sender alone can change. */
const fingerprint = (surface: SurfaceName, body: Uint8Array): string =>
  `${surface} ${body.length} ${Bun.hash(body)}`;

/** As Stripe's API says it. */
const REPEATED = { "idempotent-replayed": "true" };

/** Visible characters; 255 is what others allow. */
const FORM = /^[\x21-\x7e]{1,255}$/;
const PARAM = { param: "Idempotency-Key" };

const malformed = (): Refusal =>
  refuse("invalid_request", "`Idempotency-Key` must have 1 to 255 visible ASCII characters.", PARAM);

const otherBody = (): Refusal =>
  refuse(
    "invalid_request",
    "`Idempotency-Key` was sent with another request within the last 10 minutes: use a new one for each request, and the same one only to send it again.",
    PARAM,
  );

const isGone = (headers: WholeAnswer["headers"]): Refusal =>
  refuse(
    "invalid_request",
    `\`Idempotency-Key\` names a request that was answered, and its answer is no longer kept. What it cost is in receipt \`${headers["x-gateway-receipt"]}\`. Use a new key to have it answered again.`,
    PARAM,
  );

export const tooManyOpen = (): Refusal =>
  refuse(
    "rate_limited",
    "Too many requests with an `Idempotency-Key` are open. Retry in 5 s, or send the request without one.",
    { retryAfterS: 5, ...PARAM },
  );

export const KEPT_MS = 600_000;
const MIB = 1024 * 1024;
const OF_PAYER = { requests: 2_000, bytes: 16 * MIB };
const OF_OTHER = { requests: 20, bytes: MIB / 4 };
const ALL_PAID = { requests: 20_000, bytes: 64 * MIB };
const ALL_UNPAID = { requests: 2_000, bytes: 4 * MIB };
