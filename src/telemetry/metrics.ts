import type { HostSlots } from "../hosts/slots/host-slots.ts";
import type { FinishedRequest } from "../ledger/receipt.ts";
import type { HostReport } from "../routing/health.ts";
import type { ByteBudget } from "../units/byte-budget.ts";
import type { Figure } from "../units/figure.ts";
import { type NanoUsd, usdFromNano } from "../units/usd.ts";
import { BUILD, VERSION } from "../units/version.ts";
import type { Metric } from "./metric.ts";
import { type CounterSeries, counters, distributions, labels, MAX_SERIES, sampled } from "./series.ts";

/**
 * What happened in this process since start. It names no key, balance or prompt, and no label comes from what
 * a client wrote: a model that is not in the catalog is "unknown".
 */
export class Metrics {
  private readonly families = {
    requests: counters(
      "gateway_requests_total",
      "Generation requests, by surface, model, host, outcome and error code.",
    ),
    attempts: counters("gateway_attempts_total", "Attempts, by host and outcome."),
    tokens: counters("gateway_tokens_total", "Tokens of requests that a host served, by kind."),
    cost: counters("gateway_cost_usd_total", "USD charged to balances."),
    hostCost: counters(
      "gateway_host_cost_usd_total",
      "USD that hosts charged, as they say or as the `cost` of their routes has it, by model and host.",
    ),
    untrustedProxies: counters(
      "gateway_untrusted_forwarded_total",
      "Requests with X-Forwarded-For from an address that is not in trusted_proxies, by address; the first few.",
    ),
    writtenOff: counters(
      "gateway_written_off_usd_total",
      "USD not charged because the host failed early in a stream.",
    ),
    firstToken: distributions(
      "gateway_first_token_seconds",
      "Seconds from a request's arrival to its first token.",
      FIRST_TOKEN_S,
    ),
    duration: distributions(
      "gateway_request_seconds",
      "Seconds from a request's arrival to its end.",
      DURATION_S,
    ),
  };
  /** By surface, model and host. */
  private readonly series = new Map<string, RouteSeries>();
  /** By host and outcome: as many as hosts were ever configured, times the outcomes of an attempt. */
  private readonly tries = new Map<string, CounterSeries>();

  constructor(private readonly sources: MetricSources) {}

  /** A generation request has ended. */
  finished(done: FinishedRequest): void {
    const { state, errorCode, tokens, firstTokenMs, totalMs } = done;
    const way = this.way(done.surface, this.modelOf(done), done.host ?? "");
    way.outcome(state, errorCode ?? "").add(1);
    if (totalMs !== null) way.duration.observe(totalMs / 1_000);
    const { served } = way;
    if (served === null) return;
    if (firstTokenMs !== null) served.firstToken.observe(firstTokenMs / 1_000);
    served.input.add(tokens.input);
    served.cacheRead.add(tokens.cacheRead);
    served.cacheWrite.add(tokens.cacheWrite);
    served.output.add(tokens.output);
    served.reasoning.add(tokens.reasoning);
    served.cost.add(usdFromNano(done.cost));
    if (done.writeOff > 0) served.writtenOff.add(usdFromNano(done.writeOff));
  }

  /** A generation request was refused before its body was read. */
  turnedAway(surface: string, code: string): void {
    this.way(surface, UNKNOWN, "").outcome("refused", code).add(1);
  }

  tried(host: string, outcome: string): void {
    const count = () => this.families.attempts.of(labels({ host, outcome }));
    this.tries.getOrInsertComputed(`${host}\n${outcome}`, count).add(1);
  }

  /** A host said what an answer cost there. */
  hostCharged(model: string, host: string, usd: number): void {
    this.families.hostCost.of(labels({ model, host })).add(usd);
  }

  /** An address that is not trusted sent `X-Forwarded-For`. */
  untrustedProxy(address: string): void {
    this.families.untrustedProxies.of(labels({ address })).add(1);
  }

  read(): Metric[] {
    const families = Object.values(this.families).map((family) => family.read());
    return [...families, ...gauges(this.sources), ...hostMetrics(this.sources.hosts())];
  }

  private modelOf({ model, modelRequested }: FinishedRequest): string {
    return model ?? (this.sources.knows(modelRequested) ? modelRequested : UNKNOWN);
  }

  private way(surface: string, model: string, host: string): RouteSeries {
    const key = `${surface}\n${model}\n${host}`;
    const known = this.series.get(key);
    if (known !== undefined) return known;
    const way = routeSeries(this.families, { surface, model, host });
    if (this.series.size < MAX_SERIES) this.series.set(key, way);
    return way;
  }
}

/** Where the gauges are read when they are asked for. */
export interface MetricSources {
  /** A model of the catalog, or an automatic route. */
  knows(model: string): boolean;
  hosts(): readonly HostReport[];
  readonly slots: HostSlots;
  readonly bodies: ByteBudget;
  readonly sockets: { readonly count: number; readonly bytes: number };
  readonly ledger: { readonly openHolds: number; readonly lost: NanoUsd };
  readonly journal: {
    readonly healthy: boolean;
    readonly syncs: number;
    readonly unappliedCount: number;
    /** Records that are written and not durable yet. */
    readonly undurable: number;
  };
  /** The version of the store's tables. */
  readonly schema: number;
  /** Metrics of the store. */
  figures(): readonly Figure[];
  /** Request log lines and traces that were dropped. */
  dropped(): Readonly<Record<string, number>>;
}

const UNKNOWN = "unknown";
const FIRST_TOKEN_S = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30];
const DURATION_S = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1200];

/** The series of one surface, model and host, looked up once. */
function routeSeries(
  families: Metrics["families"],
  at: { readonly surface: string; readonly model: string; readonly host: string },
) {
  const { model, host } = at;
  const outcomes = new Map<string, CounterSeries>();
  const tokens = (kind: string) => families.tokens.of(labels({ model, host, kind }));
  return {
    outcome(outcome: string, code: string): CounterSeries {
      const key = code === "" ? outcome : `${outcome}\n${code}`;
      const known = outcomes.get(key);
      if (known !== undefined) return known;
      const count = families.requests.of(labels({ ...at, outcome, code }));
      outcomes.set(key, count);
      return count;
    },
    duration: families.duration.of(labels(at)),
    /** Null where no host was asked. */
    served:
      host === ""
        ? null
        : {
            firstToken: families.firstToken.of(labels(at)),
            input: tokens("input"),
            cacheRead: tokens("cache_read"),
            cacheWrite: tokens("cache_write"),
            output: tokens("output"),
            reasoning: tokens("reasoning"),
            cost: families.cost.of(labels({ model, host })),
            writtenOff: families.writtenOff.of(labels({ model, host })),
          },
  };
}

type RouteSeries = ReturnType<typeof routeSeries>;

const one = (name: string, help: string, value: number, more: Pick<Figure, "type" | "together"> = {}) =>
  sampled({ name, help, ...more }, [["", value]]);

function gauges(sources: MetricSources): Metric[] {
  const { slots, bodies, sockets, ledger, journal } = sources;
  const loads = [...slots.loads()];
  const each = (name: string, help: string, value: (load: (typeof loads)[number]) => number) =>
    sampled(
      { name, help },
      loads.map((load) => [labels({ host: load.host }), value(load)]),
    );
  const build = labels({ version: VERSION, build: BUILD, schema: String(sources.schema) });
  return [
    sampled(
      {
        name: "gateway_build_info",
        help: "1, for the gateway that runs: its version, build and schema.",
        together: "least",
      },
      [[build, 1]],
    ),
    each("gateway_host_in_flight", "Requests in flight at the host.", ({ inFlight }) => inFlight),
    each("gateway_host_limit", "The most requests that the host is given at once.", ({ limit }) => limit),
    each("gateway_host_waiting", "Requests waiting for the host.", ({ waiting }) => waiting),
    sampled(
      {
        name: "gateway_host_key_state",
        help: "1 while the key of a host with several is usable, 0.5 while it rests, 0 once the host refuses it.",
        together: "least",
      },
      loads.flatMap(({ host, keys = [] }) =>
        keys.map(({ name, state }) => [labels({ host, key: name }), KEY_STATES[state]] as const),
      ),
    ),
    one("gateway_body_bytes", "Bytes of memory taken by large request bodies.", bodies.taken),
    one("gateway_bodies_waiting", "Large request bodies waiting for memory.", bodies.waiting),
    one("gateway_websockets", "WebSockets that are open.", sockets.count),
    one("gateway_websocket_bytes", "Bytes of the conversations that they may continue.", sockets.bytes),
    one("gateway_open_holds", "Holds of requests that are not settled yet.", ledger.openHolds),
    one(
      "gateway_loss_usd_total",
      "USD delivered beyond what was held, since start.",
      usdFromNano(ledger.lost),
      COUNTER,
    ),
    one(
      "gateway_journal_healthy",
      "1 while the journal can make records durable, else 0.",
      journal.healthy ? 1 : 0,
      {
        together: "least",
      },
    ),
    one("gateway_journal_syncs_total", "Disk syncs of the journal since start.", journal.syncs, COUNTER),
    one("gateway_journal_undurable", "Journal records that are not durable yet.", journal.undurable),
    one(
      "gateway_journal_unapplied",
      "Ended requests that are durable in the journal and not yet in the database.",
      journal.unappliedCount,
    ),
    sampled(
      {
        name: "gateway_telemetry_dropped_total",
        type: "counter",
        help: "Request log lines and spans dropped since start.",
      },
      Object.entries(sources.dropped()).map(([kind, count]) => [labels({ kind }), count]),
    ),
    ...sources.figures().map(({ value, ...about }) => sampled(about, [["", value]])),
    ...processMetrics(),
  ];
}

/** What any process of a gateway tells of itself. */
export const processMetrics = (): Metric[] => [
  one("process_resident_memory_bytes", "Resident memory in bytes.", process.memoryUsage.rss(), {
    together: "apart",
  }),
  one("process_cpu_seconds_total", "User and system CPU time in seconds.", cpuSeconds(), {
    type: "counter",
    together: "apart",
  }),
];

const KEY_STATES = { usable: 1, resting: 0.5, retired: 0 } as const;

const COUNTER = { type: "counter" } as const;

function cpuSeconds(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
}

/** What routing knows of each host. Every process learns by itself, so that together they know averages. */
function hostMetrics(hosts: readonly HostReport[]): Metric[] {
  type Read = (host: HostReport) => number | null;
  const each = (name: string, help: string, kind: Pick<Figure, "type" | "together">, read: Read) =>
    sampled(
      { name, help, ...kind },
      hosts.flatMap((host) => {
        const one = read(host);
        return one === null ? [] : [[labels({ host: host.id }), one] as const];
      }),
    );
  return [
    each(
      "gateway_host_usable",
      "1 while the host takes requests, 0 while it rests after failures, 0.5 while some of its models rest or it is being tried again.",
      MEAN,
      ({ state }) => (state === "closed" ? 1 : state === "open" ? 0 : 0.5),
    ),
    each(
      "gateway_host_first_token_seconds",
      "Moving average of the time to the first token, in seconds.",
      MEAN,
      ({ firstTokenMs }) => (firstTokenMs === null ? null : firstTokenMs / 1_000),
    ),
    each(
      "gateway_host_tokens_per_second",
      "Moving average of output tokens per second after the first token.",
      MEAN,
      ({ tokensPerSecond }) => tokensPerSecond,
    ),
    each(
      "gateway_host_served_total",
      "Attempts that the host answered, since start.",
      COUNTER,
      ({ served }) => served,
    ),
    each(
      "gateway_host_failed_total",
      "Attempts and streams in which the host failed, since start.",
      COUNTER,
      ({ failed }) => failed,
    ),
  ];
}

const MEAN = { together: "mean" } as const;
