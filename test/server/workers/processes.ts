import { readFileSync } from "node:fs";

/** The processes of a supervisor's workers, in the order of their numbers. */
export function workersOf(supervisor: number): number[] {
  const numbered = childrenOf(supervisor).flatMap((pid) => {
    const number = variable(pid, "GATEWAY_WORKER");
    return number === undefined ? [] : [{ pid, number: Number(number) }];
  });
  return numbered.sort((a, b) => a.number - b.number).map(({ pid }) => pid);
}

/** The process that keeps the database for them; undefined while there is none. */
export const keeperOf = (supervisor: number): number | undefined =>
  childrenOf(supervisor).find((pid) => variable(pid, "GATEWAY_KEEPER") !== undefined);

function childrenOf(pid: number): number[] {
  const found = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8");
  return found.split(" ").filter(Boolean).map(Number);
}

/** An environment variable of a process, if it still runs. */
function variable(pid: number, name: string): string | undefined {
  try {
    const all = readFileSync(`/proc/${pid}/environ`, "utf8").split("\0");
    return all.find((one) => one.startsWith(`${name}=`))?.slice(name.length + 1);
  } catch {
    return undefined;
  }
}
