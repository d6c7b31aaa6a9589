/** What all processes of a store have in common: secrets that the first start makes, and what each node runs with. */
export interface FleetStore {
  /** The secret of this name: `made`, unless another process has made it before. */
  secret(name: string, made: string): Promise<string>;
  /** What a node runs with, from its start or its latest reload on. */
  note(node: string, settings: NodeSettings): Promise<void>;
  settings(): Promise<ReadonlyMap<string, NodeSettings>>;
}

/** Hashes by which nodes compare themselves: of the admin token, and of each member of the configuration. */
export type NodeSettings = Readonly<Record<string, string>>;

/** Members in which the two differ. */
export function differences(one: NodeSettings, other: NodeSettings): string[] {
  const names = new Set([...Object.keys(one), ...Object.keys(other)]);
  return [...names].filter((name) => one[name] !== other[name]).sort();
}

/** What a node writes of its admin token: without the fleet's secret, nobody can try tokens against it. */
export const hashOfToken = (token: string, secret: string): string =>
  new Bun.CryptoHasher("sha256", secret).update(`admin token ${token}`).digest("hex");

/** By which free requests of a network are counted. */
export const NETWORKS = "networks";
export const ADMIN_TOKEN = "GATEWAY_ADMIN_TOKEN";
