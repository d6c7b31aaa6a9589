import type { Feature } from "../api/about.ts";
import { type Config, type Links, linksOf, startOnlyChanges } from "../config/config.ts";
import type { FoundConfig } from "../config/find-config.ts";
import type { FoundHosts } from "../config/hosts-from-environment.ts";
import { type SyncedModel, withSynced } from "../config/synced-models.ts";
import type { GenerationSettings } from "../generation/deps.ts";
import type { HttpSettings } from "../http/deps.ts";
import type { SecretHash } from "../units/secret-hash.ts";

/** The configuration in force, and what the floors get of it: worked out once, not for every request. */
export class ActiveConfig {
  config!: Config;
  links!: Links;
  generation!: GenerationSettings;
  http!: HttpSettings;
  /** Rows of model lists, on top of the configuration. */
  synced: readonly SyncedModel[] = [];
  /** The version of `synced`; 0 before the first. */
  modelVersion = 0;
  private readonly started: Config;
  private url = "";

  constructor(private read: FoundConfig) {
    this.started = read.config;
    this.compose();
  }

  get found(): FoundHosts {
    return this.read.found;
  }

  /** Fields that the latest reload changed, and that will be in force after a restart. */
  get needsRestart(): string[] {
    return startOnlyChanges(this.started, this.config);
  }

  /** Once the port is open. Links are only read by requests, and none arrives before. */
  listensAt(url: string): void {
    this.url = url;
    this.compose();
  }

  replace(read: FoundConfig): void {
    this.read = read;
    this.compose();
  }

  /** Other models and prices, on top of the same configuration. */
  applyModels(version: number, rows: readonly SyncedModel[]): void {
    this.modelVersion = version;
    this.synced = rows;
    this.compose();
  }

  private compose(): void {
    this.config = withSynced(this.read.config, this.synced);
    const { links, generation, http } = settingsOf(this.config, this.url, this.started);
    this.links = links;
    this.generation = generation;
    this.http = http;
  }
}

function settingsOf(config: Config, url: string, started: Config) {
  const links = linksOf(config, url);
  const { generation, routing, openTier } = config;
  return {
    links,
    generation: {
      ...links,
      ...generation,
      attempts: { ...generation, hedgeMs: routing.hedgeMs },
      order: routing.order,
      openTierRpm: openTier.rpm,
      sellsCredit: started.payments !== null,
    },
    http: {
      ...links,
      bodyBytes: config.bodyBytes,
      catalogIsPublic: config.catalogIsPublic,
      accountlessKeysPerAddressPerHour: config.setup.accountlessKeysPerAddressPerHour,
      mailsPerHour: config.signIn.mailsPerHour,
      receiptDays: config.receipts.keepDays,
      lowCredit: config.lowCredit,
      operators: (config.operators ?? []).map(({ token, ...operator }) => ({
        ...operator,
        tokenHash: token as SecretHash,
      })),
      trustedProxies: config.trustedProxies,
      features: featuresOf(config, started),
    },
  };
}

/** Payments are those of the start: what is under way is watched by what it was started with. */
function featuresOf({ receipts }: Config, { payments }: Config): ReadonlySet<Feature> {
  const features = new Set<Feature>();
  if (payments !== null) features.add("payments");
  if (payments?.stripe != null) features.add("payments.stripe");
  if (receipts.sign) features.add("receipts.sign");
  return features;
}
