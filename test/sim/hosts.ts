import type { SurfaceName } from "../../src/catalog/catalog.ts";
import {
  bytesOf,
  type HostBytes,
  type HostCall,
  type HostExchange,
  HostFault,
  type HostReply,
  type Transport,
} from "../../src/hosts/transport.ts";
import type { Clock } from "../../src/units/clock.ts";
import { refusal } from "../fakes/refusals.ts";
import { eventText, type HostAnswer } from "../fakes/transcripts.ts";
import { LANGUAGES, pieces, type Report, reported } from "./languages.ts";
import type { Random } from "./random.ts";

/**
 * Hosts that speak each of the three languages and fail as real ones do, at any point. What each exchange did is kept,
 * so that the auditor can work out what the answer was worth without asking the gateway.
 */
export class SimulatedHosts implements Transport {
  constructor(
    /** By the client's name for the request, with which its prompt begins. */
    private readonly served: Map<string, Served[]>,
    private readonly clock: Clock,
    private readonly random: Random,
    private readonly trouble: () => number,
  ) {}

  open(call: HostCall): HostExchange {
    const text = new TextDecoder().decode(Buffer.concat(call.body!));
    const body = JSON.parse(text) as Sent;
    const script = writeScript(this.random, this.trouble(), body.max_tokens ?? body.max_output_tokens ?? 400);
    const { host, path } = { host: call.to.host.id, path: call.to.path };
    const language = LANGUAGE_AT.find(([end]) => path.endsWith(end))![1];
    const receivedMs = this.clock.elapsedMs();
    const served: Served = {
      host,
      model: body.model,
      language,
      script,
      receivedMs,
      wordsSent: 0,
      endedMs: null,
    };
    const name = CLIENTS_NAME.exec(text)![1]!;
    this.served.set(name, [...(this.served.get(name) ?? []), served]);
    return body.stream === true
      ? new StreamedExchange(this.clock, this.random, served)
      : new WholeExchange(this.clock, this.random, served);
  }

  close(): void {}
}

const LANGUAGE_AT = [
  ["/chat/completions", "chat.completions"],
  ["/responses", "responses"],
  ["/messages", "messages"],
] as const;
const CLIENTS_NAME = /\b(r\d+) x/;

/** What is read of a request. */
interface Sent {
  model: string;
  stream?: boolean;
  max_tokens?: number;
  max_output_tokens?: number;
}

export interface Served {
  readonly host: string;
  /** As the host names it. */
  readonly model: string;
  readonly language: SurfaceName;
  readonly script: Script;
  readonly receivedMs: number;
  wordsSent: number;
  /** When the host had sent its whole answer. */
  endedMs: number | null;
}

/** What a host does with one request. */
interface Script {
  readonly start:
    | "answers"
    | "declines"
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

/** As reported on the wire: honest, or one of the false reports that hosts have sent. */
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
        "declines",
        "declines",
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
  if (start === "declines") {
    const usage = { kind: kind === "absent" ? kind : "honest", prompt } as const;
    return { start, words: 0, thoughts: 0, usage, death: "none" };
  }
  const thinks = kind === "honest" && prompt % 2 === 0;
  const thoughts = thinks ? Math.min(6 * prompt, most - words) : 0;
  return { start, words, thoughts, usage: { kind, prompt }, death };
}

/** Some say with every word what they have used so far. */
export const alwaysReports = ({
  language,
  script: { usage },
}: Pick<Served, "language" | "script">): boolean =>
  language === "chat.completions" && usage.kind === "honest" && usage.prompt % 5 === 0;

/** What the wire says of the usage, given the honest one. */
const reportOf =
  ({ usage, words }: Script): Report =>
  (honest) => {
    const to = (input: unknown, output: unknown) => {
      const members = Object.entries(honest).map(([name, value]) => {
        if (name === "prompt_tokens" || name === "input_tokens") return [name, input];
        return [name, name === "completion_tokens" || name === "output_tokens" ? output : value];
      });
      return Object.fromEntries(members);
    };
    switch (usage.kind) {
      case "honest":
        return honest;
      case "absent":
        return undefined;
      case "negative":
        return to(-5, -words);
      case "huge":
        return to(9e15, 9e15);
      case "zero":
        return to(0, 0);
      case "beyond":
        // Possible, but more than was asked for and held.
        return to(usage.prompt, 100_000);
      case "text":
        return to("many", null);
    }
  };

/** The configuration says that no host thinks faster. */
export const THOUGHTS_PER_SECOND = 20;

/** One delta's text: one token for every vocabulary. */
export const WORD = " the";

const encode = (text: string): Uint8Array => new TextEncoder().encode(text);

/** What both kinds of answer share: a head that comes or does not, and a queue that the gateway reads. */
abstract class SimulatedExchange implements HostExchange, HostReply {
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

  protected answer(): HostAnswer {
    const { language, script } = this.served;
    const { start, usage, words, thoughts } = script;
    const used = { input: usage.prompt, output: words + thoughts, reasoning: thoughts };
    if (start === "declines") return refusal(language, [], used);
    return LANGUAGES[language].answer(
      Array.from({ length: words }, () => WORD),
      used,
    );
  }

  protected errorOf(message: string): Uint8Array {
    return encode(
      LANGUAGES[this.served.language]
        .error(message)
        .map((event) => eventText(event))
        .join(""),
    );
  }

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
      this.push(encode(JSON.stringify({ type: "error", error: { type: "api_error", message: "no" } })));
      return this.push(null);
    }
    this.answerHead(this);
    if (start === "empty") return this.push(null);
    if (start === "error_first") {
      this.push(this.errorOf("overloaded"));
      return this.push(null);
    }
    if (start === "answers" || start === "declines") this.write();
  }
}

class StreamedExchange extends SimulatedExchange {
  private thought = 0;
  private pieces!: ReturnType<typeof pieces>;

  constructor(clock: Clock, random: Random, served: Served) {
    super(clock, random, served, "text/event-stream");
  }

  protected write(): void {
    const { language, script } = this.served;
    this.pieces = pieces(language, this.answer(), reportOf(script));
    if (script.start === "declines") {
      this.served.endedMs = this.clock.elapsedMs();
      this.push(encode(this.pieces.head + this.pieces.tail));
      return this.push(null);
    }
    this.push(encode(this.pieces.head));
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
      const word = this.pieces.words[this.served.wordsSent]!;
      this.served.wordsSent += 1;
      const used = alwaysReports(this.served)
        ? `"usage":${JSON.stringify(this.usedSoFar())}`
        : '"usage":null';
      this.push(encode(eventText({ ...word, data: word.data.replace('"usage":null', used) })));
    }
    // It thinks also where a single burst was all of its words: no host thinks faster than the configuration says.
    if (this.served.wordsSent < script.words || this.thought < script.thoughts)
      return this.later(this.random.below(400), () => this.words());
    this.later(this.random.below(50), () => this.finish());
  }

  private usedSoFar(): object {
    const { script, wordsSent } = this.served;
    const [prompt_tokens, completion_tokens] = [script.usage.prompt, wordsSent + this.thought];
    return {
      prompt_tokens,
      completion_tokens,
      total_tokens: prompt_tokens + completion_tokens,
      completion_tokens_details: { reasoning_tokens: this.thought },
    };
  }

  private finish(): void {
    switch (this.served.script.death) {
      case "truncated":
        return this.push(new HostFault("truncated", "cut off"));
      case "error_event":
        return this.push(this.errorOf("died"));
      case "stalls":
        return;
      case "no_end_mark":
        return this.push(null);
      case "none":
        this.push(encode(this.pieces.tail));
        this.served.endedMs = this.clock.elapsedMs();
        this.push(null);
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
      const bytes = encode(JSON.stringify(reported(this.answer().whole, reportOf(script))));
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
