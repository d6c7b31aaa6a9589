import { chmodSync, existsSync, fsyncSync, openSync, readFileSync, writeSync } from "node:fs";
import { CommandFailure, EXIT } from "../failure.ts";
import { fieldsOf, jsonOf, textOf } from "./fields.ts";

/**
 * The file that says what became of each customer and key, in lines of JSON: the source's id, the new ids, and the new
 * secrets, which nothing else has. Each line is durable before the next step, so that an import that broke off goes on.
 */
export class Mapping {
  private readonly lines = new Map<string, Readonly<Record<string, unknown>>>();
  private readonly done = new Set<string>();
  private readonly handle: number;

  constructor(
    file: string,
    /** Tells sources of one kind apart. */
    readonly source: string,
  ) {
    if (existsSync(file)) this.read(file);
    this.handle = openSync(file, "a", 0o600);
    chmodSync(file, 0o600);
    if (this.lines.size === 0) this.add({ import: source });
  }

  isDone(source: string): boolean {
    return this.done.has(source);
  }

  has(source: string): boolean {
    return this.lines.has(source);
  }

  balance(source: string): { readonly balanceId: string; readonly recoverySecret: string } | null {
    const { balance_id, recovery_secret } = fieldsOf(this.lines.get(source));
    const [balanceId, recoverySecret] = [textOf(balance_id), textOf(recovery_secret)];
    return balanceId === null || recoverySecret === null ? null : { balanceId, recoverySecret };
  }

  add(line: Readonly<Record<string, unknown>>): void {
    writeSync(this.handle, `${JSON.stringify(line)}\n`);
    fsyncSync(this.handle);
    this.take(line);
  }

  private read(file: string): void {
    const text = readFileSync(file, "utf8");
    // A crash may have left half a line, of which the next one would become a part.
    const lines = text.split("\n");
    for (const line of lines) if (line !== "") this.take(fieldsOf(jsonOf(line)));
    const [first] = lines;
    const { import: source } = fieldsOf(jsonOf(first));
    if (source === this.source && text.endsWith("\n")) return;
    throw new CommandFailure(
      EXIT.usage,
      source === this.source
        ? `the last line of ${file} is not whole`
        : `${file} is not the mapping of an import from ${this.source}`,
      source === this.source
        ? "Remove that line, and repeat the import."
        : "Name another file with --customers.",
    );
  }

  private take(line: Readonly<Record<string, unknown>>): void {
    const source = textOf(line.source) ?? "";
    if (line.done === true) this.done.add(source);
    else this.lines.set(source, line);
  }
}
