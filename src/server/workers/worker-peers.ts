import type { HostSlots, OpenSlotShare } from "../../hosts/slots/host-slots.ts";
import { type Throttles, throttlesOf } from "../../ledger/limits/address.ts";
import type { Affinity, RemoteRoute } from "../../routing/affinity.ts";
import type { Health, HostRest } from "../../routing/health.ts";
import type { StoredReceipt } from "../../store/ledger/receipts.ts";
import { atMost, type Clock } from "../../units/clock.ts";
import type { ReceiptId } from "../../units/id.ts";
import type { IpcChannel, SupervisorQueries, ToWorker, WorkerQueries, WorkerState } from "./messages.ts";
import { type AnswerOf, answerTo, Questions } from "./questions.ts";

/** What one worker shares with the others, through the supervisor. */
export class WorkerPeers {
  /** The machine's: a network that one worker throttles is throttled by all. */
  readonly throttles: Throttles = throttlesOf((throttled) => ({
    take: (block, limit) => this.query("throttle", throttled, block, limit),
    giveBack: (block) => this.channel.send({ kind: "given_back", throttled, block }),
  }));
  readonly slots: OpenSlotShare = (host, most) => ({
    request: (count) => this.channel.send({ kind: "slots_wanted", host, most, count }),
    giveBack: (count) => this.channel.send({ kind: "slots_returned", host, most, count }),
  });
  readonly rests = (rest: HostRest): void => this.channel.send({ kind: "rests", rest });
  readonly stays = (routes: readonly RemoteRoute[]): void => this.channel.send({ kind: "stays", routes });
  private readonly questions = new Questions<SupervisorQueries>((question) => this.channel.send(question));

  constructor(
    private readonly channel: IpcChannel,
    private readonly clock: Clock,
  ) {}

  /** From here on, this worker answers the others, and takes from them what they share. */
  join(own: SharedRooms): void {
    this.channel.listen((message) => this.handleMessage(message, own));
  }

  /** The receipt of a request that another worker refused, or has ended a moment ago. */
  receipt(id: ReceiptId): Promise<StoredReceipt | null> {
    return this.query("receipt", id);
  }

  private handleMessage(message: ToWorker, own: SharedRooms): void {
    switch (message.kind) {
      case "answer":
        return this.questions.answered(message);
      case "question":
        return void this.answer(message, own);
      case "slots_granted":
        return own.slots.given(message.host, message.most, message.count);
      case "slots_recalled":
        return own.slots.recalled(message.host, message.most, message.count);
      case "rests":
        return own.health.onRemoteRest(message.rest);
      case "stays":
        return own.affinity.onRemoteRoutes(message.routes);
    }
  }

  private async answer(question: ToWorker & { kind: "question" }, { state, receipts }: SharedRooms) {
    this.channel.send(await answerTo<WorkerQueries>(question, { state, receipt: (id) => receipts.here(id) }));
  }

  /**
   * Fails when the supervisor does not answer: one worker's view in place of all of theirs would be wrong.
   */
  async query<Name extends keyof SupervisorQueries>(
    name: Name,
    ...values: Parameters<SupervisorQueries[Name]>
  ): Promise<AnswerOf<SupervisorQueries, Name>> {
    const answer = await atMost(this.clock, TIMEOUT_MS, this.questions.request(name, ...values));
    if (answer === undefined) throw new Error("the supervisor does not answer");
    return answer;
  }
}

/** What the workers of a gateway share, as this one has it. */
interface SharedRooms {
  state(): WorkerState;
  readonly slots: Pick<HostSlots, "given" | "recalled">;
  readonly health: Pick<Health, "onRemoteRest">;
  readonly affinity: Pick<Affinity, "onRemoteRoutes">;
  readonly receipts: { here(id: ReceiptId): StoredReceipt | null };
}

/** The supervisor itself waits half a second for the slowest worker. */
const TIMEOUT_MS = 2_000;
