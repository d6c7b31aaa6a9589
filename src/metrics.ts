import type { Ledger } from "./ledger/ledger.ts";
import type { DurableJournal } from "./store/journal.ts";
import { usdFromNano } from "./units/usd.ts";

/** What happened since start, as Prometheus text. Nothing in it names a key, a balance or a prompt. */
export class Metrics {
  private readonly answers = new Map<string, number>();
  private readonly tries = new Map<string, number>();

  constructor(
    private readonly ledger: Ledger,
    private readonly journal: DurableJournal,
  ) {}

  answered(surface: string, status: number): void {
    increment(this.answers, `surface="${surface}",status="${status}"`);
  }

  tried(host: string, outcome: string): void {
    increment(this.tries, `host="${host}",outcome="${outcome}"`);
  }

  text(): string {
    const { ledger, journal } = this;
    return [
      ...counters("gateway_requests_total", "Generation requests answered.", this.answers),
      ...counters("gateway_attempts_total", "Hosts tried, by what became of it.", this.tries),
      ...gauge("gateway_open_holds", "Reservations that are not settled yet.", ledger.openHolds),
      ...gauge("gateway_loss_usd", "Delivered beyond what was held, since start.", usdFromNano(ledger.lost)),
      ...gauge("gateway_journal_healthy", "1 while the disk accepts records.", journal.healthy ? 1 : 0),
      ...gauge("gateway_journal_syncs", "Syncs of the journal since start.", journal.syncs),
      ...gauge(
        "gateway_journal_unapplied",
        "Durable ends that the database does not have yet.",
        journal.unappliedCount,
      ),
      ...gauge("process_resident_memory_bytes", "Resident memory.", process.memoryUsage.rss()),
      "",
    ].join("\n");
  }
}

function increment(counts: Map<string, number>, labels: string): void {
  counts.set(labels, (counts.get(labels) ?? 0) + 1);
}

const counters = (name: string, help: string, counts: ReadonlyMap<string, number>): string[] => [
  `# HELP ${name} ${help}`,
  `# TYPE ${name} counter`,
  ...[...counts].map(([labels, count]) => `${name}{${labels}} ${count}`),
];

const gauge = (name: string, help: string, value: number): string[] => [
  `# HELP ${name} ${help}`,
  `# TYPE ${name} gauge`,
  `${name} ${value}`,
];
