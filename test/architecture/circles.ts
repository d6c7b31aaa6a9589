import type { Module } from "./module.ts";

/** Sets of files in which each imports each, by way of the others; types included or not. */
export function circles(modules: readonly Module[], kind: "values" | "values and types"): string[][] {
  const graph = new Map(
    modules.map(({ path, imports }) => [
      path,
      imports
        .filter(({ isOurs, isType }) => isOurs && (kind !== "values" || !isType))
        .map(({ target }) => target),
    ]),
  );
  const order = new Map<string, number>();
  const open: string[] = [];
  const found: string[][] = [];
  const visit = (path: string): number => {
    let low = order.size;
    order.set(path, low);
    open.push(path);
    for (const target of graph.get(path)!) {
      if (!graph.has(target)) continue;
      if (!order.has(target)) low = Math.min(low, visit(target));
      else if (open.includes(target)) low = Math.min(low, order.get(target)!);
    }
    if (low === order.get(path)) {
      const circle = open.splice(open.indexOf(path));
      if (circle.length > 1 || graph.get(path)!.includes(path)) found.push(circle.sort());
    }
    return low;
  };
  for (const path of graph.keys()) if (!order.has(path)) visit(path);
  return found;
}
