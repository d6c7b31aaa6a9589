/**
 * Secrets of providers, which a configuration names by their variables: those that a source holds in the clear get a
 * variable of their own, whose value goes into a file that its owner alone can read.
 */
export class Secrets {
  /** By the name of their variable. */
  readonly found = new Map<string, string>();

  /** `${NAME}` for a secret, or for a reference in the source's own form. */
  reference(written: string, owner: string, kind = "API_KEY"): string {
    const name = REFERENCE.exec(written)?.[1];
    return `\${${name ?? this.keep(written, owner, kind)}}`;
  }

  references(headers: Readonly<Record<string, string>>, owner: string): Record<string, string> {
    const entries = Object.entries(headers).map(([name, value]) => [
      name,
      this.reference(value, owner, name),
    ]);
    return Object.fromEntries(entries);
  }

  /** Under the given name, such as that of the operator's token. */
  set(name: string, secret: string): void {
    this.found.set(name, secret);
  }

  /** As a shell, docker and Bun read it. */
  file(): string {
    return [...this.found]
      .map(
        ([name, secret]) =>
          `${name}=${PLAIN.test(secret) ? secret : `'${secret.replaceAll("'", "'\\''")}'`}\n`,
      )
      .join("");
  }

  private keep(secret: string, owner: string, kind: string): string {
    for (const [name, other] of this.found) if (other === secret) return name;
    const stem = `${owner}_${kind}`
      .toUpperCase()
      .replaceAll(/[^A-Z0-9]+/g, "_")
      .replace(/^(?=\d)/, "_");
    let name = stem;
    for (let number = 2; this.found.has(name); number++) name = `${stem}_${number}`;
    this.found.set(name, secret);
    return name;
  }
}

const REFERENCE = /^os\.environ\/([A-Za-z_][A-Za-z0-9_]*)$/;
const PLAIN = /^[A-Za-z0-9_./:+=@-]+$/;
