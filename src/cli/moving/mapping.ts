import { chmodSync, existsSync, fsyncSync, openSync, readFileSync, truncateSync, writeSync } from "node:fs";
import { CommandFailure, EXIT } from "../failure.ts";
import { fieldsOf, jsonOf, textOf } from "./fields.ts";

/**
 * The file that says what became of each customer and key, in lines of JSON: the source's id, the new ids, and the new
 * secrets, which nothing else has. Each line is durable before the next step, so that an import that broke off goes on.
 */
export class Mapping {
  private readonly lines = new Map<string, Readonly<Record<string, unknown>>>();
  private readonly done = new Set<string>();
  private readonly keyIds = new Set<unknown>();
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

  /** Whether a line has the secret of the key that the gateway knows by this id. */
  hasSecretOf(keyId: string): boolean {
    return this.keyIds.has(keyId);
  }

  add(line: Readonly<Record<string, unknown>>): void {
    writeSync(this.handle, `${JSON.stringify(line)}\n`);
    fsyncSync(this.handle);
    this.take(line);
  }

  private read(file: string): void {
    const text = readFileSync(file, "utf8");
    const whole = text.slice(0, text.lastIndexOf("\n") + 1);
    const lines = whole.split("\n").filter((line) => line !== "");
    const { import: source } = fieldsOf(jsonOf(lines[0]));
    const isStarted = JSON.stringify({ import: this.source }).startsWith(text);
    if (source !== this.source && !isStarted)
      throw new CommandFailure(
        EXIT.usage,
        `${file} is not the mapping of an import from ${this.source}`,
        "Name another file with --customers.",
      );
    // What a crash left of a line is no step that was taken note of, and the next line must not become a part of it.
    if (whole !== text) truncateSync(file, Buffer.byteLength(whole));
    for (const line of lines) this.take(fieldsOf(jsonOf(line)));
  }

  private take(line: Readonly<Record<string, unknown>>): void {
    const source = textOf(line.source) ?? "";
    if (line.done === true) this.done.add(source);
    else this.lines.set(source, line);
    this.keyIds.add(line.key_id);
  }
}
