/**
 * Settings that a file writes as the gateway has them, but for how their names are spelt: `max_hosts` in the one,
 * `maxHosts` in the other. Null is a value where the schema allows it.
 */
export type InFile<Settings> = {
  readonly [Name in keyof Settings & string as SnakeCase<Name>]: Settings[Name];
};

type SnakeCase<Name extends string> = Name extends `${infer First}${infer Rest}`
  ? `${First extends Lowercase<First> ? First : `_${Lowercase<First>}`}${SnakeCase<Rest>}`
  : "";

type Given<Settings> = { readonly [Name in keyof InFile<Settings>]?: InFile<Settings>[Name] | undefined };

const snakeCase = (name: string): string => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

export function withDefaults<Settings extends object>(
  defaults: Settings,
  given: Given<Settings> = {},
): Settings {
  const rows: Readonly<Record<string, unknown>> = given;
  const settings = Object.entries(defaults).map(([name, value]) => {
    const row = rows[snakeCase(name)];
    return [name, row === undefined ? value : row];
  });
  return Object.fromEntries(settings) as Settings;
}

export const inFile = <Settings extends object>(settings: Settings): InFile<Settings> =>
  Object.fromEntries(
    Object.entries(settings).map(([name, value]) => [snakeCase(name), value]),
  ) as InFile<Settings>;
