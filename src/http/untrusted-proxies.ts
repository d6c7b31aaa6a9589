/** The first few addresses that forward others' without being trusted, each reported once. */
export class UntrustedProxies {
  private readonly seen = new Set<string>();
  private readonly counted = new WeakSet<Request>();

  constructor(
    private readonly count: (address: string) => void,
    private readonly report: (address: string) => void,
  ) {}

  /** A request counts once, however often its sender matters. */
  note(address: string, request: Request): void {
    if (this.counted.has(request)) return;
    this.counted.add(request);
    const isNew = !this.seen.has(address);
    // Any client can send the header, and must not be able to fill the log.
    if (isNew && this.seen.size >= MAX_PROXIES) return;
    this.seen.add(address);
    this.count(address);
    if (isNew) this.report(address);
  }
}

const MAX_PROXIES = 8;
