/** The first few addresses that forward others' without being trusted, each reported once. */
export class UntrustedProxies {
  private readonly seen = new Set<string>();

  constructor(
    private readonly count: (address: string) => void,
    private readonly report: (address: string) => void,
  ) {}

  note(address: string): void {
    const isNew = !this.seen.has(address);
    // Any client can send the header, and must not be able to fill the log.
    if (isNew && this.seen.size >= MAX_PROXIES) return;
    this.seen.add(address);
    this.count(address);
    if (isNew) this.report(address);
  }
}

const MAX_PROXIES = 8;
