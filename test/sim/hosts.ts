import {
  bytesOf,
  type Exchange,
  type HostBytes,
  type HostCall,
  HostFault,
  type HostReply,
  type Transport,
} from "../../src/hosts/transport.ts";
import type { Clock } from "../../src/units/clock.ts";
import type { Random } from "./random.ts";

/**
 * Hosts that speak chat completions and fail as real ones do, at any point. What each exchange did is kept,
 * so that the auditor can work out what the answer was worth without asking the gateway.
 */
export class SimulatedHosts implements Transport {
  constructor(
    /** By the request's `user` field, which carries the client's name for it. */
    private readonly served: Map<string, Served[]>,
    private readonly clock: Clock,
    private readonly random: Random,
    private readonly trouble: () => number,
  ) {}

  open(call: HostCall): Exchange {
    const body = JSON.parse(new TextDecoder().decode(call.body!)) as {
      user: string;
      stream?: boolean;
      max_tokens?: number;
    };
    const script = writeScript(this.random, this.trouble(), body.max_tokens ?? 400);
    const served: Served = { host: call.to.host.id, script, wordsSent: 0, endedMs: null };
    this.served.set(body.user, [...(this.served.get(body.user) ?? []), served]);
    return body.stream === true
      ? new StreamedExchange(this.clock, this.random, served)
      : new WholeExchange(this.clock, this.random, served);
  }

  close(): void {}
}

export interface Served {
  readonly host: string;
  readonly script: Script;
  wordsSent: number;
  /** When the host had sent its whole answer. */
  endedMs: number | null;
}

/** What a host does with one request. */
export interface Script {
  readonly start:
    | "answers"
    | "refused"
    | "reset"
    | "silent"
    | "silent_after_head"
    | "empty"
    | "error_first"
    | number;
  readonly words: number;
  /** Tokens that the host thinks in the middle of its words, unseen, and bills. */
  readonly thoughts: number;
  readonly usage: Usage;
  /** After `words`, instead of ending properly. */
  readonly death: "none" | "truncated" | "error_event" | "stalls" | "no_end_mark";
}

/** As reported on the wire: honest, or one of the lies that hosts have told. */
type Usage = {
  readonly kind: "honest" | "absent" | "negative" | "huge" | "zero" | "text" | "beyond";
  readonly prompt: number;
};

const STATUSES = [400, 401, 403, 404, 408, 429, 500, 502, 503] as const;

function writeScript(random: Random, trouble: number, most: number): Script {
  const troubled = random.chance(trouble);
  const start = troubled
    ? random.pick([
        "refused",
        "reset",
        "silent",
        "silent_after_head",
        "empty",
        "error_first",
        random.pick(STATUSES),
      ] as const)
    : "answers";
  const words = random.chance(0.3) ? random.below(60) : 1 + random.below(Math.min(most, 400));
  const kind = random.chance(0.7)
    ? "honest"
    : random.pick(["absent", "negative", "huge", "zero", "text", "beyond"] as const);
  const death = random.chance(trouble)
    ? random.pick(["truncated", "error_event", "stalls", "no_end_mark"] as const)
    : "none";
  const prompt = 1 + random.below(30);
  const thinks = kind === "honest" && prompt % 2 === 0;
  const thoughts = thinks ? Math.min(6 * prompt, most - words) : 0;
  return { start, words, thoughts, usage: { kind, prompt }, death };
}

/** Some say with every word what they have used so far. */
export const tellsAlways = ({ usage }: Script): boolean => usage.kind === "honest" && usage.prompt % 5 === 0;

const honestUsage = (prompt: number, output: number, thoughts: number): Record<string, unknown> => ({
  prompt_tokens: prompt,
  completion_tokens: output,
  total_tokens: prompt + output,
  completion_tokens_details: { reasoning_tokens: thoughts },
});

/** What the wire says of the usage. */
function reportedUsage({ usage, words, thoughts }: Script): Record<string, unknown> | null {
  switch (usage.kind) {
    case "honest":
      return honestUsage(usage.prompt, words + thoughts, thoughts);
    case "absent":
      return null;
    case "negative":
      return { prompt_tokens: -5, completion_tokens: -words, total_tokens: 0 };
    case "huge":
      return { prompt_tokens: 9e15, completion_tokens: 9e15, total_tokens: 9e15 };
    case "zero":
      return { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 };
    case "beyond":
      // Possible, but more than was asked for and held.
      return {
        prompt_tokens: usage.prompt,
        completion_tokens: 100_000,
        total_tokens: usage.prompt + 100_000,
      };
    case "text":
      return { prompt_tokens: "many", completion_tokens: null, total_tokens: {} };
  }
}

/** The gateway is told that no host thinks faster. */
export const THOUGHTS_PER_SECOND = 20;

/** One delta's text: one token for every vocabulary. */
export const WORD = " the";

const encode = (value: unknown): Uint8Array => new TextEncoder().encode(`data: ${JSON.stringify(value)}\n\n`);
const chunk = (delta: object, finish: string | null = null) => ({
  id: "c",
  object: "chat.completion.chunk",
  created: 1,
  model: "host-model",
  choices: [{ index: 0, delta, finish_reason: finish }],
});

/** What both kinds of answer share: a head that comes or does not, and a queue that the gateway reads. */
abstract class SimulatedExchange implements Exchange, HostReply {
  readonly reply: Promise<HostReply | HostFault>;
  status = 200;
  readonly headers: ReadonlyMap<string, string>;
  protected cancelled = false;
  private answerHead!: (reply: HostReply | HostFault) => void;
  private readonly queue: (Uint8Array | null | HostFault)[] = [];
  private reader: ((next: Uint8Array | null | HostFault) => void) | null = null;

  constructor(
    protected readonly clock: Clock,
    protected readonly random: Random,
    protected readonly served: Served,
    type: string,
  ) {
    this.headers = new Map([["content-type", type]]);
    this.reply = new Promise((resolve) => {
      this.answerHead = resolve;
    });
    this.later(random.below(300), () => this.begin());
  }

  read(): Uint8Array | null | HostFault | Promise<Uint8Array | null | HostFault> {
    const next = this.queue.shift();
    if (next !== undefined) return next;
    return new Promise((resolve) => {
      this.reader = resolve;
    });
  }

  takeBody(): HostBytes {
    return bytesOf(this);
  }

  cancel(): void {
    if (this.cancelled) return;
    this.cancelled = true;
    this.answerHead(new HostFault("cancelled", "cancelled"));
    this.push(new HostFault("cancelled", "cancelled"));
  }

  done(): void {
    this.cancel();
  }

  protected abstract write(): void;

  protected push(next: Uint8Array | null | HostFault): void {
    if (this.reader === null) this.queue.push(next);
    else {
      const read = this.reader;
      this.reader = null;
      read(next);
    }
  }

  protected later(ms: number, run: () => void): void {
    this.clock.after(ms, () => {
      if (!this.cancelled) run();
    });
  }

  private begin(): void {
    const { start } = this.served.script;
    if (start === "refused" || start === "reset") return this.answerHead(new HostFault(start, start));
    if (start === "silent") return;
    if (typeof start === "number") {
      this.status = start;
      this.answerHead(this);
      this.push(new TextEncoder().encode(JSON.stringify({ error: { message: "no" } })));
      return this.push(null);
    }
    this.answerHead(this);
    if (start === "empty") return this.push(null);
    if (start === "error_first") {
      this.push(encode({ error: { message: "overloaded" } }));
      return this.push(null);
    }
    if (start === "answers") this.write();
  }
}

class StreamedExchange extends SimulatedExchange {
  private thought = 0;

  constructor(clock: Clock, random: Random, served: Served) {
    super(clock, random, served, "text/event-stream");
  }

  protected write(): void {
    this.push(encode(chunk({ role: "assistant", content: "" })));
    this.later(this.random.below(200), () => this.words());
  }

  private words(): void {
    const { script } = this.served;
    if (this.thought < script.thoughts && this.served.wordsSent >= script.words / 2) {
      this.thought = script.thoughts;
      return this.later((script.thoughts * 1_000) / THOUGHTS_PER_SECOND, () => this.words());
    }
    const burst = Math.min(1 + this.random.below(20), script.words - this.served.wordsSent);
    for (let index = 0; index < burst; index++) {
      this.served.wordsSent += 1;
      const output = this.served.wordsSent + this.thought;
      const told = tellsAlways(script)
        ? { usage: honestUsage(script.usage.prompt, output, this.thought) }
        : {};
      this.push(encode({ ...chunk({ content: WORD }), ...told }));
    }
    if (this.served.wordsSent < script.words) return this.later(this.random.below(400), () => this.words());
    this.later(this.random.below(50), () => this.finish());
  }

  private finish(): void {
    const { script } = this.served;
    switch (script.death) {
      case "truncated":
        return this.push(new HostFault("truncated", "cut off"));
      case "error_event":
        return this.push(encode({ error: { message: "died" } }));
      case "stalls":
        return;
      case "no_end_mark":
        return this.push(null);
      case "none": {
        this.push(encode(chunk({}, "stop")));
        const usage = reportedUsage(script);
        if (usage !== null) this.push(encode({ ...chunk({}), choices: [], usage }));
        this.push(new TextEncoder().encode("data: [DONE]\n\n"));
        this.served.endedMs = this.clock.elapsedMs();
        this.push(null);
      }
    }
  }
}

class WholeExchange extends SimulatedExchange {
  constructor(clock: Clock, random: Random, served: Served) {
    super(clock, random, served, "application/json");
  }

  protected write(): void {
    const { script } = this.served;
    if (script.death === "stalls") return;
    this.later(script.words * 5, () => {
      const usage = reportedUsage(script);
      const whole = JSON.stringify({
        id: "c",
        object: "chat.completion",
        created: 1,
        model: "host-model",
        choices: [
          {
            index: 0,
            message: { role: "assistant", content: WORD.repeat(script.words) },
            finish_reason: "stop",
          },
        ],
        ...(usage === null ? {} : { usage }),
      });
      const bytes = new TextEncoder().encode(whole);
      if (script.death !== "none") {
        this.push(bytes.slice(0, bytes.length >> 1));
        return this.push(new HostFault("truncated", "cut off"));
      }
      this.served.wordsSent = script.words;
      this.served.endedMs = this.clock.elapsedMs();
      this.push(bytes);
      this.push(null);
    });
  }
}
