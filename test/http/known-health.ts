import type { Catalog, Route } from "../../src/catalog/catalog.ts";
import { Health, type HostReport } from "../../src/routing/health.ts";

/** Health of hosts to which nothing was sent, besides what a test says of them. */
export class KnownHealth extends Health {
  /** Hosts that have failed and served nobody since. */
  readonly unprovenHosts = new Set<string>();
  reports: readonly HostReport[] | null = null;

  override unproven(route: Route): boolean {
    return this.unprovenHosts.has(route.host.id) || super.unproven(route);
  }

  override report(catalog: Catalog): HostReport[] {
    return this.reports === null ? super.report(catalog) : [...this.reports];
  }
}
