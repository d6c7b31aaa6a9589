/** A whole number on the command line: `--name N`. */
export function option(name: string, fallback: number): number {
  const at = process.argv.indexOf(`--${name}`);
  const value = at === -1 ? fallback : Number(process.argv[at + 1]);
  if (!Number.isInteger(value)) throw new Error(`--${name} takes a whole number`);
  return value;
}
