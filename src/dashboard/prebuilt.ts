/** The bundled applications: names, media types and bytes in base64; and entries, by the names of their sources. */
export interface Packed {
  readonly files: readonly (readonly [name: string, type: string, base64: string])[];
  readonly entries: readonly (readonly [source: string, file: string])[];
}

/** In a checkout, none. `scripts/build.ts` puts them here in what it builds. */
export const PREBUILT: Packed | null = null;
