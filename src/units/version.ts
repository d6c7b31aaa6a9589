import manifest from "../../package.json" with { type: "json" };

/** Set by `scripts/bundle.ts`: the commit that an executable, a package or an image was built from. */
declare const GATEWAY_BUILD: string | undefined;

/** Semantic version. */
export const VERSION: string = manifest.version;

/** A commit, or "checkout" where the sources run as they are. */
export const BUILD: string = typeof GATEWAY_BUILD === "undefined" ? "checkout" : GATEWAY_BUILD;

/** `0.1.0+3f2a…`: version and build as semantic versioning writes them. */
export const RELEASE = `${VERSION}+${BUILD}`;
