import type { CatalogWithLists } from "../catalog/catalog.ts";
import { hostAndPort } from "./address.ts";
import { memberName, type ValueOf } from "./setting.ts";
import { SETTINGS } from "./settings.ts";

/**
 * What the operator decided, checked and complete: every default is applied, times are in milliseconds, money
 * is in nano-dollars. Immutable; a reload builds another one. `settings.ts` says what each member means.
 */
export interface Config extends Settings {
  /** The file it was read from; null when there was none. */
  readonly file: string | null;
  readonly catalog: CatalogWithLists;
  /** Ids of the models that the file lists: no model list changes them. */
  readonly modelsOfFile: ReadonlySet<string>;
  /** Whether the catalog may be read without a key. */
  readonly catalogIsPublic: boolean;
}

/** What needs neither the file's name nor the hosts that the environment offers. */
export type Settings = Omit<ValueOf<typeof SETTINGS>, "hosts" | "models" | "addModels" | "auto" | "catalog">;

/** The settings that differ although only a start reads them, by their names in the file. */
export function startOnlyChanges(started: Config, now: Config): string[] {
  const values = (config: Config, name: string) => JSON.stringify(config[memberName(name) as keyof Settings]);
  const changed = Object.entries(SETTINGS.rows).flatMap(([name, { restart }]) =>
    restart === true && values(started, name) !== values(now, name) ? [name] : [],
  );
  return changed.sort();
}

/** Nothing is kept in the data folder, and none is needed. */
export const isDiskless = ({ journal }: Pick<Config, "journal">): boolean => journal === "postgres";

/** The addresses that messages and pages name. */
export interface Links {
  readonly baseUrl: string;
  readonly dashboardUrl: string;
  readonly statusUrl: string;
  /** Where customers reach the operator; null when the configuration does not say. */
  readonly contact: string | null;
}

/**
 * `listening` is the address that the server took, `http://HOST:PORT`: the base address where none is
 * configured.
 */
export function linksOf(config: Config, listening: string): Links {
  const baseUrl = config.baseUrl ?? listening;
  return {
    baseUrl,
    dashboardUrl: config.dashboardUrl ?? `${baseUrl}/dashboard`,
    statusUrl: config.statusUrl ?? `${baseUrl}/status`,
    contact: config.contact,
  };
}

/** Every address of this machine. */
export const isWildcard = (hostname: string): boolean =>
  hostname === "0.0.0.0" || hostname === "::" || hostname === "";

/** The address for a person to open, which a wildcard address is not. */
export function listeningUrl(hostname: string, port: number): string {
  return `http://${hostAndPort({ hostname: isWildcard(hostname) ? "localhost" : hostname, port })}`;
}
