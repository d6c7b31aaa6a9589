import type { Figure } from "./bookkeeping.ts";
import type { Ledger } from "./ledger/ledger.ts";
import type { HostReport } from "./routing/health.ts";
import type { DurableJournal } from "./store/journal.ts";
import { usdFromNano } from "./units/usd.ts";

/** What happened since start, as Prometheus text. Nothing in it names a key, a balance or a prompt. */
export class Metrics {
  private readonly answers = new Map<string, number>();
  private readonly tries = new Map<string, number>();

  constructor(
    private readonly ledger: Ledger,
    private readonly journal: DurableJournal,
    private readonly figures: () => readonly Figure[],
  ) {}

  answered(surface: string, status: number): void {
    increment(this.answers, `surface="${surface}",status="${status}"`);
  }

  tried(host: string, outcome: string): void {
    increment(this.tries, `host="${host}",outcome="${outcome}"`);
  }

  text(hosts: readonly HostReport[]): string {
    const { ledger, journal } = this;
    return [
      ...counters("gateway_requests_total", "Generation requests answered.", this.answers),
      ...counters("gateway_attempts_total", "Hosts tried, by what became of it.", this.tries),
      ...hostMetrics(hosts),
      ...gauge("gateway_open_holds", "Reservations that are not settled yet.", ledger.openHolds),
      ...gauge("gateway_loss_usd", "Delivered beyond what was held, since start.", usdFromNano(ledger.lost)),
      ...gauge("gateway_journal_healthy", "1 while the disk accepts records.", journal.healthy ? 1 : 0),
      ...gauge("gateway_journal_syncs", "Syncs of the journal since start.", journal.syncs),
      ...gauge(
        "gateway_journal_unapplied",
        "Durable ends that the database does not have yet.",
        journal.unappliedCount,
      ),
      ...this.figures().flatMap(({ name, help, value }) => gauge(name, help, value)),
      ...gauge("process_resident_memory_bytes", "Resident memory.", process.memoryUsage.rss()),
      "",
    ].join("\n");
  }
}

/** What routing knows of each host. */
function hostMetrics(hosts: readonly HostReport[]): string[] {
  const each = (value: (host: HostReport) => number | null): ReadonlyMap<string, number> =>
    new Map(
      hosts.flatMap((host) => {
        const one = value(host);
        return one === null ? [] : [[`host="${host.id}"`, one] as const];
      }),
    );
  return [
    ...gauges(
      "gateway_host_usable",
      "1 while the host takes requests, 0.5 while some of its models rest or it is tried again, 0 while it rests.",
      each(({ state }) => (state === "closed" ? 1 : state === "open" ? 0 : 0.5)),
    ),
    ...gauges(
      "gateway_host_first_token_seconds",
      "Moving average of the time to the first token.",
      each(({ firstTokenMs }) => (firstTokenMs === null ? null : firstTokenMs / 1_000)),
    ),
    ...gauges(
      "gateway_host_tokens_per_second",
      "Moving average of output tokens a second after the first.",
      each(({ tokensPerSecond }) => tokensPerSecond),
    ),
    ...counters(
      "gateway_host_served_total",
      "Attempts that the host answered.",
      each(({ served }) => served),
    ),
    ...counters(
      "gateway_host_failed_total",
      "Attempts and streams in which the host failed.",
      each(({ failed }) => failed),
    ),
  ];
}

function increment(counts: Map<string, number>, labels: string): void {
  counts.set(labels, (counts.get(labels) ?? 0) + 1);
}

const counters = (name: string, help: string, counts: ReadonlyMap<string, number>): string[] => [
  `# HELP ${name} ${help}`,
  `# TYPE ${name} counter`,
  ...[...counts].map(([labels, count]) => `${name}{${labels}} ${count}`),
];

const gauges = (name: string, help: string, values: ReadonlyMap<string, number>): string[] => [
  `# HELP ${name} ${help}`,
  `# TYPE ${name} gauge`,
  ...[...values].map(([labels, value]) => `${name}{${labels}} ${value}`),
];

const gauge = (name: string, help: string, value: number): string[] => [
  `# HELP ${name} ${help}`,
  `# TYPE ${name} gauge`,
  `${name} ${value}`,
];
