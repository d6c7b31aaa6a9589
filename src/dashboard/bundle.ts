import { type Packed, PREBUILT } from "./prebuilt.ts";

/**
 * The applications behind `/dashboard` and `/admin`, bundled in memory when somebody first opens one of them:
 * a checkout has no build step, and a gateway that only serves an API pays nothing. Packages hold the files
 * already (scripts/build.ts).
 */
export class AppBundle {
  private built: Promise<Built> | null = null;

  /** The files that the page of an application starts with. */
  async entry(app: AppName): Promise<{ readonly script: string; readonly style: string }> {
    const { entries } = await this.bundle();
    return { script: entries.get(app)!, style: entries.get("app")! };
  }

  /** A file by its name, which holds the hash of its content; null when there is none of that name. */
  async file(name: string): Promise<AppFile | null> {
    return (await this.bundle()).files.get(name) ?? null;
  }

  private bundle(): Promise<Built> {
    this.built ??= (PREBUILT === null ? build() : unpack(PREBUILT)).catch((error) => {
      // The next visitor tries again: the disk may have been busy.
      this.built = null;
      throw error;
    });
    return this.built;
  }
}

export type AppName = "dashboard" | "admin";

export interface AppFile {
  readonly type: string;
  readonly bytes: Uint8Array<ArrayBuffer>;
}

export interface Built {
  readonly files: ReadonlyMap<string, AppFile>;
  /** Name of the source → name of the bundled file. */
  readonly entries: ReadonlyMap<string, string>;
}

export async function build(): Promise<Built> {
  const { outputs } = await Bun.build({
    entrypoints: ENTRIES.map((file) => new URL(file, import.meta.url).pathname),
    target: "browser",
    minify: true,
    splitting: true,
    naming: "[name]-[hash].[ext]",
    define: { "process.env.NODE_ENV": '"production"' },
  });
  const files = new Map<string, AppFile>();
  const entries = new Map<string, string>();
  for (const output of outputs) {
    const name = output.path.replace(/^.*\//, "");
    const whole = name.endsWith(".js") ? await smaller(name, output) : output;
    files.set(name, { type: output.type, bytes: new Uint8Array(await whole.arrayBuffer()) });
    if (output.kind !== "chunk") entries.set(name.replace(/-[^-]*$/, ""), name);
  }
  return { files, entries };
}

/**
 * Minified once more, by itself: in the first pass, what files share takes all names of one letter, and each local name has two.
 * Saves 4,400 bytes.
 */
async function smaller(name: string, file: Blob): Promise<Blob> {
  const { outputs } = await Bun.build({
    entrypoints: [`/${name}`],
    files: { [`/${name}`]: file },
    external: ["*"],
    target: "browser",
    minify: true,
  });
  return outputs[0]!;
}

const ENTRIES = ["./dashboard.tsx", "./admin.tsx", "./app.css"] as const;

/** What a package holds of them. */
export const pack = ({ files, entries }: Built): Packed => ({
  files: [...files].map(([name, { type, bytes }]) => [name, type, bytes.toBase64()]),
  entries: [...entries],
});

const unpack = async ({ files, entries }: Packed): Promise<Built> => ({
  files: new Map(files.map(([name, type, base64]) => [name, { type, bytes: Uint8Array.fromBase64(base64) }])),
  entries: new Map(entries),
});
